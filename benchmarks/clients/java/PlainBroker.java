import java.util.concurrent.CountDownLatch;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;

/** ActiveMQ Classic in memory: OPENWIRE_PORT STOMP_PORT AMQP_PORT. */
public final class PlainBroker {
    public static void main(String[] ports) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        PolicyEntry all = new PolicyEntry();
        all.setQueue(">");
        all.setProducerFlowControl(false);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(all);
        broker.setDestinationPolicy(policies);
        String[] schemes = {"tcp", "stomp", "amqp"};
        for (int at = 0; at < schemes.length; at++) {
            broker.addConnector(schemes[at] + "://127.0.0.1:" + ports[at] + "?transport.tcpNoDelay=true");
        }
        broker.start();
        broker.waitUntilStarted();
        System.out.println("started");
        System.out.flush();
        new CountDownLatch(1).await();
    }
}
