package mapreduce.harness.gpu;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.slf4j.LoggerFactory;

/**
 * Which library this JVM uses, loaded once: CUDA's, or the processor's.
 *
 * <p>Its class has no logger: {@link Rates} loads it where Hadoop's jars are not.
 */
final class Library {
  static final String CUDA = "libharness-gpu-cuda.so";
  static final String CPU = "libharness-gpu-cpu.so";

  private static String loaded = "";
  private static int devices;

  private Library() {}

  /** Choose by {@code gpu.device}: gpu, cpu, or any; answers the number of devices. */
  static synchronized int choose(String device) throws DeviceException {
    switch (device) {
      case "cpu":
        return load(CPU);
      case "gpu":
        return cuda();
      case "any":
        return any();
      default:
        throw new DeviceException("gpu.device is '" + device + "': it is one of gpu, cpu, any");
    }
  }

  /** Refuse before a job is submitted what no task could do, because no library was built. */
  static void require(String device) throws DeviceException {
    boolean cpu = Library.class.getResource("/native/" + CPU) != null;
    boolean cuda = Library.class.getResource("/native/" + CUDA) != null;
    if (device.equals("gpu") ? !cuda : device.equals("any") ? !cpu && !cuda : !cpu) {
      throw lacking(device.equals("gpu") ? CUDA : CPU);
    }
  }

  private static DeviceException lacking(String name) {
    String fix =
        "install g++ (apt-get install -y g++) where the harness is set up, then 'make setup'";
    return new DeviceException(
        "harness-gpu.jar has no " + name, name.equals(CUDA) ? "build it with 'make cuda'" : fix);
  }

  private static int cuda() throws DeviceException {
    load(CUDA);
    if (devices == 0) {
      throw new DeviceException(
          "CUDA finds no device", "run with gpu.device=cpu, or on a node that has one");
    }
    return devices;
  }

  private static int any() throws DeviceException {
    try {
      return cuda();
    } catch (DeviceException why) {
      // No library, no driver or no device: 'any' asks for the processor then.
      LoggerFactory.getLogger(Library.class).info("no CUDA device: {}", why.getMessage());
      return load(CPU);
    }
  }

  private static int load(String name) throws DeviceException {
    if (!loaded.equals(name)) {
      link(name);
      loaded = name;
    }
    int[] deviceCount = new int[1];
    int code = Native.count(deviceCount);
    if (code != 0) {
      String fix =
          code == 35 ? "install NVIDIA's driver 580 or newer, or run with gpu.device=cpu" : "";
      throw new DeviceException(Native.text(), fix);
    }
    devices = deviceCount[0];
    return devices;
  }

  private static void link(String name) throws DeviceException {
    try (InputStream packed = Library.class.getResourceAsStream("/native/" + name)) {
      if (packed == null) {
        throw lacking(name);
      }
      Path here = Path.of("").toAbsolutePath();
      Path file = Files.createTempFile(here, "native-", ".so");
      Files.copy(packed, file, StandardCopyOption.REPLACE_EXISTING);
      try {
        System.load(file.toString());
      } finally {
        Files.delete(file); // what is loaded stays loaded
      }
    } catch (IOException | UnsatisfiedLinkError why) {
      String lacking = String.valueOf(why.getMessage());
      String fix = lacking.contains("libgomp") ? "install libgomp1 on this node" : "";
      throw new DeviceException("the library " + name + " does not load: " + lacking, fix, why);
    }
  }
}
