// The library of the GPU workloads: one source, built by nvcc for CUDA devices and by the C++ compiler for processors.
//
// Every function answers a code, 0 for well; hg_text() explains the last other one of this thread.  A device is used by
// one thread at a time.  Times are nanoseconds: of CUDA's events on a stream of the device's own, or of the processor's
// steady clock.
#include "device.h"
#include "kmeans.h"
#include "matmul.h"
#include "memory.h"
#include "sbs.h"

#define HG_API extern "C" __attribute__((visibility("default")))

using hg::Device;

HG_API const char* hg_text() { return hg::text(); }

HG_API int hg_is_cuda() { return HG_CUDA; }

// Devices of this library's kind; the processor's library has one.
HG_API int hg_count(int* devices) {
  *devices = 0;
  return hg::count(devices);
}

// Open device number `ordinal`; `limit` bytes of its memory at most, 0 for no limit.  The time is that of the context.
HG_API int hg_open(int ordinal, int threads, int64_t limit, Device** device, double* open_ns) {
  if (threads < 1 || threads > 1024) return hg::fail(hg::BAD_ARGUMENT, "%d threads", threads);
  const double began = hg::now_ns();
  Device* d = new Device;
  d->threads = threads;
  d->limit = limit;
  if (int code = hg::start(*d, ordinal)) {
    hg::stop(*d);
    delete d;
    return code;
  }
  *device = d;
  *open_ns = hg::now_ns() - began;
  return 0;
}

HG_API void hg_close(Device* d) {
  for (void* memory : d->memory)
    if (memory) hg::raw_free(memory);
  hg::stop(*d);
  delete d;
}

HG_API const char* hg_name(Device* d) { return d->name; }

HG_API double hg_alloc_ns(Device* d) { return d->alloc_ns; }

HG_API int hg_host_alloc(Device* d, int64_t bytes, int pinned, void** memory) {
  const double began = hg::now_ns();
  const int code = hg::host_alloc(memory, bytes, pinned != 0);
  d->alloc_ns += hg::now_ns() - began;
  return code;
}

HG_API void hg_host_free(void* memory, int pinned) { hg::host_free(memory, pinned != 0); }

HG_API int hg_memory_rate(Device* d, int64_t bytes, double* rate) { return hg::memory_rate(*d, bytes, rate); }

HG_API int hg_kmeans(Device* d, const float* points, int64_t n, int dimensions, const float* centres, int k, double* out,
                     int64_t* bad, double* ns) {
  return hg::kmeans(*d, points, n, dimensions, centres, k, out, bad, ns);
}

HG_API int hg_sbs(Device* d, const uint8_t* rgb, int64_t frames, int width, int height, int shifts, int radius,
                  uint8_t* depth, double* ns) {
  return hg::sbs(*d, rgb, frames, width, height, shifts, radius, depth, ns);
}

HG_API int hg_matmul(Device* d, const float* pairs, int64_t n, int tile, int repeats, float* out, double* ns) {
  return hg::matmul(*d, pairs, n, tile, repeats, out, ns);
}

#ifndef HG_NO_JAVA

#include <jni.h>

// The Java side checks the sizes of its buffers; here an address that is no direct buffer's is refused.
#define HG_JAVA(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_mapreduce_harness_gpu_Native_##name

namespace {

Device* of(jlong handle) { return reinterpret_cast<Device*>(handle); }

template <class T>
T* address(JNIEnv* env, jobject buffer) {
  return static_cast<T*>(env->GetDirectBufferAddress(buffer));
}

int report(JNIEnv* env, jdoubleArray to, const double* ns, int code) {
  if (code == 0) env->SetDoubleArrayRegion(to, 0, 3, ns);
  return code;
}

int no_buffer() { return hg::fail(hg::BAD_ARGUMENT, "a buffer is not direct"); }

}  // namespace

HG_JAVA(jstring, text)(JNIEnv* env, jclass) { return env->NewStringUTF(hg_text()); }

HG_JAVA(jboolean, isCuda)(JNIEnv*, jclass) { return jboolean(hg_is_cuda()); }

HG_JAVA(jint, count)(JNIEnv* env, jclass, jintArray to) {
  int devices = 0;
  const int code = hg_count(&devices);
  const jint value = devices;
  env->SetIntArrayRegion(to, 0, 1, &value);
  return code;
}

HG_JAVA(jint, open)(JNIEnv* env, jclass, jint ordinal, jint threads, jlong limit, jlongArray to, jdoubleArray ns) {
  Device* d = nullptr;
  double took = 0;
  const int code = hg_open(ordinal, threads, limit, &d, &took);
  const jlong handle = reinterpret_cast<jlong>(d);
  env->SetLongArrayRegion(to, 0, 1, &handle);
  env->SetDoubleArrayRegion(ns, 0, 1, &took);
  return code;
}

HG_JAVA(void, close)(JNIEnv*, jclass, jlong device) { hg_close(of(device)); }

HG_JAVA(jstring, name)(JNIEnv* env, jclass, jlong device) { return env->NewStringUTF(hg_name(of(device))); }

HG_JAVA(jdouble, allocNs)(JNIEnv*, jclass, jlong device) { return hg_alloc_ns(of(device)); }

HG_JAVA(jobject, allocate)(JNIEnv* env, jclass, jlong device, jlong bytes, jboolean pinned) {
  void* memory = nullptr;
  return hg_host_alloc(of(device), bytes, pinned, &memory) ? nullptr : env->NewDirectByteBuffer(memory, bytes);
}

HG_JAVA(void, free)(JNIEnv* env, jclass, jobject buffer, jboolean pinned) {
  hg_host_free(address<void>(env, buffer), pinned);
}

HG_JAVA(jint, memoryRate)(JNIEnv* env, jclass, jlong device, jlong bytes, jdoubleArray to) {
  double rate = 0;
  const int code = hg_memory_rate(of(device), bytes, &rate);
  env->SetDoubleArrayRegion(to, 0, 1, &rate);
  return code;
}

HG_JAVA(jint, kmeans)(JNIEnv* env, jclass, jlong device, jobject points, jlong n, jint dimensions, jobject centres,
                      jint k, jobject out, jlongArray bad, jdoubleArray to) {
  auto *p = address<float>(env, points), *c = address<float>(env, centres);
  auto* o = address<double>(env, out);
  if (!p || !c || !o) return no_buffer();
  double ns[3] = {};
  int64_t found = -1;
  const int code = hg_kmeans(of(device), p, n, dimensions, c, k, o, &found, ns);
  const jlong worst = found;
  env->SetLongArrayRegion(bad, 0, 1, &worst);
  return report(env, to, ns, code);
}

HG_JAVA(jint, sbs)(JNIEnv* env, jclass, jlong device, jobject frames, jlong n, jint width, jint height, jint shifts,
                   jint radius, jobject depth, jdoubleArray to) {
  auto *f = address<uint8_t>(env, frames), *o = address<uint8_t>(env, depth);
  if (!f || !o) return no_buffer();
  double ns[3] = {};
  return report(env, to, ns, hg_sbs(of(device), f, n, width, height, shifts, radius, o, ns));
}

HG_JAVA(jint, matmul)(JNIEnv* env, jclass, jlong device, jobject pairs, jlong n, jint tile, jint repeats, jobject out,
                      jdoubleArray to) {
  auto *p = address<float>(env, pairs), *o = address<float>(env, out);
  if (!p || !o) return no_buffer();
  double ns[3] = {};
  return report(env, to, ns, hg_matmul(of(device), p, n, tile, repeats, o, ns));
}

#endif
