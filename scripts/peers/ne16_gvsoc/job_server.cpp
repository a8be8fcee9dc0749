// Runs NE16 jobs in GVSOC's model. Requests arrive on stdin, answers leave on stdout, little endian 32-bit words; the
// protocol is that of the RTL's server: CLEAR value, WRITE address size bytes, RUN 24 registers -> ended, cycles,
// READ address size -> bytes, LIMIT cycles. The memory is what the model's addresses reach, 128 KiB.
#include <cstdio>
#include <cstdlib>
#include <ne16.hpp>

std::vector<uint8_t> vp::IoMaster::memory(1u << 17);
extern "C" vp::Component *gv_new(vp::ComponentConf &config);

// The model reads rows of 1x1 weights that its buffer does not have (it then leaves them out): arrays get some more.
extern "C" int posix_memalign(void **at, size_t alignment, size_t size) {
  *at = aligned_alloc(alignment, (size / alignment + 1) * alignment + 4096);
  return *at == nullptr;
}

static const uint32_t TRIGGER = 0x00, ACQUIRE = 0x04, STATUS = 0x0c, JOB_REGISTERS = 0x20, REGISTERS = 24;

static uint32_t word() {
  uint32_t value;
  if (fread(&value, 4, 1, stdin) != 1) exit(0);
  return value;
}

static void answer(uint32_t value) { fwrite(&value, 4, 1, stdout); }

static uint32_t access(vp::Component *engine, uint32_t address, bool write, uint32_t value = 0) {
  vp::IoReq request;
  request.set_addr(address);
  request.set_size(4);
  request.set_data(reinterpret_cast<uint8_t *>(&value));
  request.set_is_write(write);
  engine->slave->method(engine, &request);
  return value;
}

// The job begins one cycle after the trigger; its cycles are those to the end of its last event.
static void run(vp::Component *engine, int64_t limit) {
  access(engine, ACQUIRE, false);
  for (uint32_t i = 0; i < REGISTERS; i++) access(engine, JOB_REGISTERS + 4 * i, true, word());
  access(engine, TRIGGER, true, 0);
  const int64_t start = engine->now + 1;
  while (access(engine, STATUS, false) && engine->now - start < limit && engine->step()) {
  }
  answer(access(engine, STATUS, false) == 0);
  answer(uint32_t(engine->now - start));
}

static void padding(uint32_t size, FILE *from) {
  for (uint32_t i = size; i % 4; i++) from == stdin ? (void)getchar() : (void)putchar(0);
}

int main() {
  vp::ComponentConf config;
  vp::Component *engine = gv_new(config);
  engine->reset(true);
  engine->reset(false);
  std::vector<uint8_t> &memory = vp::IoMaster::memory;
  int64_t limit = 1000000;
  for (;;) {
    const uint32_t command = word();
    if (command == 1) {
      memory.assign(memory.size(), uint8_t(word()));
    } else if (command == 3) {
      run(engine, limit);
    } else if (command == 6) {
      limit = word();
    } else if (command == 2 || command == 4) {
      const uint32_t address = word(), size = word();
      if (uint64_t(address) + size > memory.size()) {
        fprintf(stderr, "address 0x%x + %u: the memory has %zu bytes\n", address, size, memory.size());
        return 1;
      }
      if (command == 2 ? fread(&memory[address], 1, size, stdin) != size : fwrite(&memory[address], 1, size, stdout) != size)
        return 1;
      padding(size, command == 2 ? stdin : stdout);
    } else {
      fprintf(stderr, "no command %u\n", command);
      return 1;
    }
    fflush(stdout);
  }
}
