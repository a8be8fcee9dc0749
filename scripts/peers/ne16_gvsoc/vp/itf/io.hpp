// See vp/vp.hpp.
#include <vp/vp.hpp>
