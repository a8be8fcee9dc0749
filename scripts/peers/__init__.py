"""One module a peer: `main(arguments)` draws networks, runs the vendor's tool and tflq on them, and reports rows."""
