package interop;

import java.net.URI;
import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSslConnectionFactory;

/** The same over {@code ssl://}. */
final class Tls implements Program {
    private static final String URL = System.getenv("INTEROP_TLS_URL");

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("talks", stage -> talks(stage, URL));
        cases.accept("talks to a host whose name is verified", stage -> talks(stage, URL + "?socket.verifyHostName=true"));
        cases.accept("talks through failover", stage -> talks(stage, "failover:(" + URL + ")"));
        cases.accept("a megabyte", Tls::megabyte);
        cases.accept("idle with an inactivity limit of 1000", stage -> {
            Connection connection = trusting(URL + "?wireFormat.maxInactivityDuration=1000").createConnection();
            try (AutoCloseable closing = connection::close) {
                connection.start();
                Thread.sleep(3_000);
                connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                stage.say("still there");
            }
        });
        cases.accept("a certificate that is not trusted", stage ->
                stage.attempt("connect", () -> connected(new ActiveMQSslConnectionFactory(URL))));
        cases.accept("a wrong password", stage -> {
            ActiveMQSslConnectionFactory factory = trusting(URL);
            factory.setPassword("wrong");
            stage.attempt("connect", () -> connected(factory));
        });
        cases.accept("without TLS to a port that has it", stage ->
                stage.attempt("connect", () -> connected(Stage.factory("tcp://127.0.0.1:" + URI.create(URL).getPort()))));
        cases.accept("with TLS to a port that has none", stage ->
                stage.attempt("connect", () -> connected(trusting("ssl://" + stage.host() + ":" + stage.port()))));
    }

    private static ActiveMQSslConnectionFactory trusting(String url) throws Exception {
        ActiveMQSslConnectionFactory factory = new ActiveMQSslConnectionFactory(url);
        factory.setTrustStore("file:" + System.getenv("INTEROP_STORE"));
        factory.setTrustStorePassword(System.getenv("INTEROP_STORE_PASSWORD"));
        factory.setUserName(Stage.USER);
        factory.setPassword(Stage.PASSWORD);
        return factory;
    }

    private static void connected(org.apache.activemq.ActiveMQConnectionFactory factory) throws Exception {
        Connection connection = factory.createConnection();
        try (AutoCloseable closing = connection::close) {
            connection.start();
        }
    }

    private static void talks(Stage stage, String url) throws Exception {
        ActiveMQConnection connection = (ActiveMQConnection) trusting(url).createConnection();
        try (AutoCloseable closing = connection::close) {
            connection.start();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Destination destination = stage.queue();
            MessageConsumer consumer = session.createConsumer(destination);
            session.createProducer(destination).send(session.createTextMessage("m"));
            session.commit();
            stage.receive("received", consumer, 1);
            session.commit();
        }
    }

    private static void megabyte(Stage stage) throws Exception {
        Connection connection = trusting(URL).createConnection();
        try (AutoCloseable closing = connection::close) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(new byte[1024 * 1024]);
            session.createProducer(stage.queue()).send(message);
            stage.receive("received", session.createConsumer(stage.queue()), 1);
        }
    }
}
