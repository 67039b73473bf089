package org.apache.hadoop.mapreduce.jobhistory;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;

/**
 * Copy FROM TO json|binary: a job history, read and written by the classes of the Hadoop in the
 * class path.
 */
final class Copy {
  public static void main(String[] args) throws Exception {
    EventWriter.WriteMode mode =
        "json".equals(args[2]) ? EventWriter.WriteMode.JSON : EventWriter.WriteMode.BINARY;
    EventReader reader =
        new EventReader(new DataInputStream(new BufferedInputStream(new FileInputStream(args[0]))));
    EventWriter writer =
        new EventWriter(new FSDataOutputStream(new FileOutputStream(args[1]), null), mode);
    for (HistoryEvent event = reader.getNextEvent(); event != null; event = reader.getNextEvent()) {
      writer.write(event);
    }
    writer.close();
    reader.close();
  }
}
