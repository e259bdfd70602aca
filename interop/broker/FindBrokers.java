import java.util.List;
import org.apache.activemq.artemis.api.core.UDPBroadcastEndpointFactory;
import org.apache.activemq.artemis.core.cluster.DiscoveryEntry;
import org.apache.activemq.artemis.core.cluster.DiscoveryGroup;

/** Listens as Artemis's clients do, and prints each broker that is found: node id, host and port, in a line each time. */
public final class FindBrokers {
    public static void main(String[] arguments) throws Exception {
        UDPBroadcastEndpointFactory place = new UDPBroadcastEndpointFactory()
                .setGroupAddress(arguments[0])
                .setGroupPort(Integer.parseInt(arguments[1]))
                .setLocalBindAddress(arguments[2]);
        DiscoveryGroup group = new DiscoveryGroup("a-client", "find", 10_000, 5_000, place, null);
        group.registerListener(FindBrokers::print);
        group.start();
        System.in.read();
        group.stop();
        System.exit(0);
    }

    private static void print(List<DiscoveryEntry> found) {
        for (DiscoveryEntry entry : found) {
            Object host = entry.getConnector().getParams().get("host");
            System.out.println(entry.getNodeID() + " " + host + " " + entry.getConnector().getParams().get("port"));
        }
        System.out.flush();
    }
}
