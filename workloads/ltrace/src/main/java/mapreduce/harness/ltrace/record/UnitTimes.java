package mapreduce.harness.ltrace.record;

import java.io.IOException;

/** The durations of units, which are so many records each. */
final class UnitTimes {

  private static UnitFile file;
  private static long units;
  private static int recordsInUnit;
  private static long unitStart;

  private UnitTimes() {}

  static void begin() {
    if (file == null) {
      try {
        file = new UnitFile();
      } catch (IOException error) {
        Recorder.file().giveUp(error);
      }
    }
    unitStart = System.nanoTime();
  }

  static void recordEnds(long now) {
    if (++recordsInUnit == Settings.UNIT) {
      recordsInUnit = 0;
      unitEnds(now);
    }
  }

  private static void unitEnds(long now) {
    if (file == null) {
      return;
    }
    try {
      file.write(now - unitStart);
      units++;
      unitStart = now;
    } catch (IOException error) {
      file = null;
      Recorder.file().giveUp(error);
    }
  }

  static void save(SpanFile spanFile) {
    spanFile.sum(Sum.UNITS, units);
    spanFile.sum(Sum.RECORDS_IN_LAST_UNIT, recordsInUnit);
    spanFile.sum(Sum.UNIT_FILE_BYTES, file == null ? 0 : file.size());
  }

  /** Cut what the file has reserved and not written. */
  static void close() throws IOException {
    if (file != null) {
      file.cut();
    }
  }
}
