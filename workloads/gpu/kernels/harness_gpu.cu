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

// A block takes three calls: upload, one of the kernels, download; each waits for the device and answers its time.
HG_API int hg_upload(Device* d, const void* block, int64_t bytes, double* ns) { return hg::upload(*d, block, bytes, ns); }

HG_API int hg_download(Device* d, void* results, int64_t bytes, double* ns) {
  return hg::download(*d, results, bytes, ns);
}

HG_API int hg_kmeans(Device* d, int64_t n, int dimensions, const float* centres, int k, double* ns) {
  return hg::kmeans(*d, n, dimensions, centres, k, ns);
}

HG_API int hg_sbs(Device* d, int64_t frames, int width, int height, int shifts, int radius, double* ns) {
  return hg::sbs(*d, frames, width, height, shifts, radius, ns);
}

HG_API int hg_matmul(Device* d, int64_t n, int tile, int repeats, double* ns) {
  return hg::matmul(*d, n, tile, repeats, ns);
}

#ifndef HG_NO_JAVA

#include <jni.h>

// The Java side checks the sizes of its buffers; here an address that is no direct buffer's is refused.
namespace {

Device* of(jlong handle) { return reinterpret_cast<Device*>(handle); }

template <class T>
T* address(JNIEnv* env, jobject buffer) {
  return static_cast<T*>(env->GetDirectBufferAddress(buffer));
}

// Hand a time over.
int timed(JNIEnv* env, jdoubleArray to, int code, double ns) {
  env->SetDoubleArrayRegion(to, 0, 1, &ns);
  return code;
}

int no_buffer() { return hg::fail(hg::BAD_ARGUMENT, "a buffer is not direct"); }

jstring text(JNIEnv* env, jclass) { return env->NewStringUTF(hg_text()); }

jboolean is_cuda(JNIEnv*, jclass) { return jboolean(hg_is_cuda()); }

jint count(JNIEnv* env, jclass, jintArray to) {
  int devices = 0;
  const int code = hg_count(&devices);
  const jint value = devices;
  env->SetIntArrayRegion(to, 0, 1, &value);
  return code;
}

jint open(JNIEnv* env, jclass, jint ordinal, jint threads, jlong limit, jlongArray to, jdoubleArray ns) {
  Device* d = nullptr;
  double took = 0;
  const int code = hg_open(ordinal, threads, limit, &d, &took);
  const jlong handle = reinterpret_cast<jlong>(d);
  env->SetLongArrayRegion(to, 0, 1, &handle);
  env->SetDoubleArrayRegion(ns, 0, 1, &took);
  return code;
}

void close(JNIEnv*, jclass, jlong device) { hg_close(of(device)); }

jstring name(JNIEnv* env, jclass, jlong device) { return env->NewStringUTF(hg_name(of(device))); }

jdouble alloc_ns(JNIEnv*, jclass, jlong device) { return hg_alloc_ns(of(device)); }

jobject allocate(JNIEnv* env, jclass, jlong device, jlong bytes, jboolean pinned) {
  void* memory = nullptr;
  return hg_host_alloc(of(device), bytes, pinned, &memory) ? nullptr : env->NewDirectByteBuffer(memory, bytes);
}

void release(JNIEnv* env, jclass, jobject buffer, jboolean pinned) { hg_host_free(address<void>(env, buffer), pinned); }

jint memory_rate(JNIEnv* env, jclass, jlong device, jlong bytes, jdoubleArray to) {
  double rate = 0;
  const int code = hg_memory_rate(of(device), bytes, &rate);
  env->SetDoubleArrayRegion(to, 0, 1, &rate);
  return code;
}

jint upload(JNIEnv* env, jclass, jlong device, jobject block, jlong bytes, jdoubleArray to) {
  auto* from = address<void>(env, block);
  double ns = 0;
  const int code = from ? hg_upload(of(device), from, bytes, &ns) : no_buffer();
  return timed(env, to, code, ns);
}

jint download(JNIEnv* env, jclass, jlong device, jobject results, jlong bytes, jdoubleArray to) {
  auto* there = address<void>(env, results);
  double ns = 0;
  const int code = there ? hg_download(of(device), there, bytes, &ns) : no_buffer();
  return timed(env, to, code, ns);
}

jint kmeans(JNIEnv* env, jclass, jlong device, jlong n, jint dimensions, jobject centres, jint k, jdoubleArray to) {
  auto* from = address<float>(env, centres);
  double ns = 0;
  const int code = from ? hg_kmeans(of(device), n, dimensions, from, k, &ns) : no_buffer();
  return timed(env, to, code, ns);
}

jint sbs(JNIEnv* env, jclass, jlong device, jlong n, jint width, jint height, jint shifts, jint radius,
         jdoubleArray to) {
  double ns = 0;
  const int code = hg_sbs(of(device), n, width, height, shifts, radius, &ns);
  return timed(env, to, code, ns);
}

jint matmul(JNIEnv* env, jclass, jlong device, jlong n, jint tile, jint repeats, jdoubleArray to) {
  double ns = 0;
  const int code = hg_matmul(of(device), n, tile, repeats, &ns);
  return timed(env, to, code, ns);
}

#define HG_BUFFER "Ljava/nio/ByteBuffer;"
#define HG_METHOD(name, signature, function) \
  { const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function) }

const JNINativeMethod METHODS[] = {
    HG_METHOD("text", "()Ljava/lang/String;", text),
    HG_METHOD("isCuda", "()Z", is_cuda),
    HG_METHOD("count", "([I)I", count),
    HG_METHOD("open", "(IIJ[J[D)I", open),
    HG_METHOD("close", "(J)V", close),
    HG_METHOD("name", "(J)Ljava/lang/String;", name),
    HG_METHOD("allocNs", "(J)D", alloc_ns),
    HG_METHOD("allocate", "(JJZ)" HG_BUFFER, allocate),
    HG_METHOD("release", "(" HG_BUFFER "Z)V", release),
    HG_METHOD("memoryRate", "(JJ[D)I", memory_rate),
    HG_METHOD("upload", "(J" HG_BUFFER "J[D)I", upload),
    HG_METHOD("download", "(J" HG_BUFFER "J[D)I", download),
    HG_METHOD("kmeans", "(JJI" HG_BUFFER "I[D)I", kmeans),
    HG_METHOD("sbs", "(JJIIII[D)I", sbs),
    HG_METHOD("matmul", "(JJII[D)I", matmul),
};

}  // namespace

// The library that is loaded last serves: where CUDA's finds no device, the processor's takes its place.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  jclass type = env->FindClass("mapreduce/harness/gpu/Native");
  if (!type || env->RegisterNatives(type, METHODS, sizeof METHODS / sizeof METHODS[0]) != 0) return JNI_ERR;
  return JNI_VERSION_1_8;
}

#endif
