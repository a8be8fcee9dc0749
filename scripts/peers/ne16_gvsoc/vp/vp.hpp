// What GVSOC's model of NE16 asks of its engine, and no more: a clock with events, and a memory that answers at once.
// Build it with the model's own sources (build); none of them is in this folder.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace std;  // as the engine's own header has it

namespace vp {

enum IoReqStatus { IO_REQ_OK, IO_REQ_INVALID };
enum TraceLevel { DEBUG };

class Block {
 public:
  virtual ~Block() = default;
};

struct ComponentConf {};

class Trace {
 public:
  enum Level { LEVEL_DEBUG, LEVEL_INFO };
  template <typename... Arguments>
  void msg(Arguments...) {}
  void fatal(const char *text) {
    std::fputs(text, stderr);
    std::exit(1);
  }
};

class IoReq {
 public:
  void init() {}
  void set_addr(uint64_t value) { address = value; }
  void set_size(uint64_t value) { size = value; }
  void set_data(uint8_t *value) { data = value; }
  void set_is_write(bool value) { is_write = value; }
  uint64_t get_addr() const { return address; }
  uint64_t get_size() const { return size; }
  uint8_t *get_data() const { return data; }
  bool get_is_write() const { return is_write; }
  int64_t get_latency() const { return 0; }

 private:
  uint64_t address = 0, size = 0;
  uint8_t *data = nullptr;
  bool is_write = false;
};

class IoMaster {
 public:
  static std::vector<uint8_t> memory;
  IoReqStatus req(IoReq *request) {
    if (request->get_addr() + request->get_size() > memory.size()) return IO_REQ_INVALID;
    uint8_t *at = memory.data() + request->get_addr();
    if (request->get_is_write())
      std::memcpy(at, request->get_data(), request->get_size());
    else
      std::memcpy(request->get_data(), at, request->get_size());
    return IO_REQ_OK;
  }
};

class IoSlave {
 public:
  using Method = IoReqStatus (*)(Block *, IoReq *);
  void set_req_meth(Method value) { method = value; }
  Method method = nullptr;
};

template <typename T>
class WireMaster {
 public:
  void sync(T) {}
};

template <typename T>
class Register {
 public:
  void set(T value) { held = value; }
  T get() const { return held; }

 private:
  T held = 0;
};
using reg_32 = Register<uint32_t>;
using reg_8 = Register<uint8_t>;

class ClockEvent {
 public:
  using Method = void (*)(Block *, ClockEvent *);
  explicit ClockEvent(Method value) : method(value) {}
  bool is_enqueued() const { return queued; }
  Method method;
  bool queued = false;
};

class Component : public Block {
 public:
  explicit Component(ComponentConf &) {}
  // The model leaves counters of its register file to an engine that clears memory.
  static void *operator new(std::size_t size) { return std::calloc(1, size); }
  static void operator delete(void *at) { std::free(at); }
  virtual void reset(bool) {}
  ClockEvent *event_new(ClockEvent::Method method) { return new ClockEvent(method); }
  void event_enqueue(ClockEvent *event, int64_t cycles) {
    event->queued = true;
    queue.insert({now + cycles, event});
  }
  // Runs the next event; false where there is none.
  bool step() {
    if (queue.empty()) return false;
    auto next = queue.begin();
    ClockEvent *event = next->second;
    now = next->first;
    queue.erase(next);
    event->queued = false;
    event->method(this, event);
    return true;
  }
  IoSlave *slave = nullptr;
  int64_t now = 0;

 protected:
  struct Traces {
    void new_trace(const char *, Trace *, TraceLevel) {}
  } traces;
  template <typename T>
  void new_reg(const char *, T *, int) {}
  template <typename T>
  void new_master_port(const char *, T *) {}
  void new_slave_port(const char *, IoSlave *port) { slave = port; }

 private:
  std::multimap<int64_t, ClockEvent *> queue;
};

}  // namespace vp
