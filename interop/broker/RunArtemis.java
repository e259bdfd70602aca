import java.io.File;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

/** Runs Artemis by a broker.xml, with users and their passwords, all in the role amq, until the process ends. */
public final class RunArtemis {
    public static void main(String[] arguments) throws Exception {
        SecurityConfiguration users = new SecurityConfiguration();
        for (int next = 1; next < arguments.length; next += 2) {
            users.addUser(arguments[next], arguments[next + 1]);
            users.addRole(arguments[next], "amq");
        }
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfigResourcePath(new File(arguments[0]).toURI().toString());
        broker.setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users));
        broker.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                broker.stop();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        Thread.currentThread().join();
    }
}
