import org.apache.activemq.broker.BrokerFactory;
import org.apache.activemq.broker.BrokerService;

/** Runs a broker by its configuration, until the process ends: version 6 brings no program for it to Maven Central. */
public final class RunBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = BrokerFactory.createBroker(arguments[0], true);
        broker.waitUntilStopped();
    }
}
