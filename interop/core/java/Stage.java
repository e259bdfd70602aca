package interop;

import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.InvalidClientIDException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.artemis.api.core.ActiveMQException;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSClient;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** What a case works with: connections by JMS and by the core API, closed after it, and lines of what it sees. */
final class Stage extends Scene {
    private final URI broker;
    private final List<AutoCloseable> opened = Collections.synchronizedList(new ArrayList<>());

    Stage(String url, String name) {
        super(name);
        this.broker = URI.create(url);
    }

    // --- what is seen

    /** Text and how often it was delivered. */
    static String show(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        String mark = message.getJMSRedelivered() ? " redelivered" : "";
        return body(message) + " #" + message.getIntProperty("JMSXDeliveryCount") + mark;
    }

    static String body(Message message) throws JMSException {
        if (message instanceof TextMessage) {
            return ((TextMessage) message).getText();
        }
        if (message instanceof BytesMessage) {
            return "bytes[" + ((BytesMessage) message).getBodyLength() + "]";
        }
        return message.getClass().getSimpleName();
    }

    /** Class and code; of JMS's errors also what caused them. */
    @Override
    String describe(Throwable error) {
        if (error instanceof ActiveMQException) {
            return error.getClass().getSimpleName() + " " + ((ActiveMQException) error).getType();
        }
        if (error instanceof JMSException) {
            String code = ((JMSException) error).getErrorCode();
            Throwable cause = error.getCause();
            return error.getClass().getSimpleName() + (code == null ? "" : " " + code)
                    + (cause instanceof ActiveMQException ? " (" + describe(cause) + ")" : "");
        }
        return classes(error);
    }

    // --- names

    Queue queue() {
        return queue("");
    }

    /** With a suffix; what stands behind a question mark are parameters of the queue. */
    Queue queue(String suffix) {
        return ActiveMQJMSClient.createQueue(own(suffix));
    }

    Topic topic() {
        return ActiveMQJMSClient.createTopic(own(""));
    }

    // --- connections

    String host() {
        return broker.getHost();
    }

    int port() {
        return broker.getPort();
    }

    /** The URL of the broker with options. */
    String url(String... options) {
        return url(port(), options);
    }

    static String url(int port, String... options) {
        return "tcp://127.0.0.1:" + port + "?callTimeout=20000" + String.join("", List.of(options).stream()
                .map(option -> "&" + option).toList());
    }

    static ActiveMQConnectionFactory factory(String url) {
        return new ActiveMQConnectionFactory(url, USER, PASSWORD);
    }

    /** A connection that has been started. */
    Connection connect(String... options) throws JMSException {
        return connectAs(null, options);
    }

    Connection connectAs(String clientId, String... options) throws JMSException {
        return started(clientId, url(options));
    }

    Connection started(String clientId, String url) throws JMSException {
        Connection connection = closed(factory(url).createConnection());
        if (clientId != null) {
            connection.setClientID(clientId);
        }
        connection.start();
        return connection;
    }

    /** A session of a connection of its own. */
    Session session(int mode, String... options) throws JMSException {
        return connect(options).createSession(mode == Session.SESSION_TRANSACTED, mode);
    }

    Session auto(String... options) throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE, options);
    }

    /** A started session of the core API; it sends at once, and acknowledges at once. */
    ClientSession core(String... options) throws Exception {
        return core(true, true, options);
    }

    ClientSession core(boolean sends, boolean acknowledges, String... options) throws Exception {
        ClientSession session = factoryOfSessions(options)
                .createSession(USER, PASSWORD, false, sends, acknowledges, false, 0);
        session.start();
        return session;
    }

    ClientSessionFactory factoryOfSessions(String... options) throws Exception {
        ServerLocator locator = closed(ActiveMQClient.createServerLocator(url(options)));
        return locator.createSessionFactory();
    }

    /** Closes it after the case. */
    <T extends AutoCloseable> T closed(T one) {
        opened.add(one);
        return one;
    }

    /** Waits until the broker has noticed that the connection with that client id broke, and let go of all it had. */
    void gone(String clientId) throws Exception {
        until(() -> {
            try (Connection connection = factory(url()).createConnection()) {
                connection.setClientID(clientId);
                return true;
            } catch (InvalidClientIDException stillThere) {
                return false;
            }
        });
    }

    @Override
    public void close() {
        for (AutoCloseable one : new ArrayList<>(opened)) {
            try {
                one.close();
            } catch (Exception broken) {
                // The broker or the wire is gone, which may be what the case was about.
            }
        }
    }

    // --- messages

    /** Persistent text messages in one transaction. */
    void send(Destination destination, String... texts) throws JMSException {
        try (Connection connection = factory(url()).createConnection()) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(destination);
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
            session.commit();
        }
    }

    /** m1 to m<count>. */
    void send(Destination destination, int count) throws JMSException {
        send(destination, 1, count);
    }

    void send(Destination destination, int first, int last) throws JMSException {
        String[] texts = new String[last - first + 1];
        for (int index = 0; index < texts.length; index++) {
            texts[index] = "m" + (first + index);
        }
        send(destination, texts);
    }

    /** Receives that many, one line for all of them. */
    List<Message> receive(String label, MessageConsumer consumer, int count) throws JMSException {
        List<Message> messages = new ArrayList<>();
        Message message = null;
        while (messages.size() < count && (message = consumer.receive(LONG_MS)) != null) {
            messages.add(message);
        }
        return seen(label, messages);
    }

    /** Takes all that the broker still has for a consumer. It is asked, so that no time is guessed. */
    List<Message> rest(String label, MessageConsumer consumer) throws JMSException {
        List<Message> messages = new ArrayList<>();
        for (Message message = consumer.receiveNoWait(); message != null; message = consumer.receiveNoWait()) {
            messages.add(message);
        }
        return seen(label, messages);
    }

    /** Takes what a queue still holds. */
    List<Message> drain(String label, Destination destination) throws JMSException {
        try (Connection connection = factory(url()).createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            return rest(label, session.createConsumer(destination));
        }
    }

    /** The next message, by a connection of its own. */
    Message next(Destination destination) throws JMSException {
        try (Connection connection = factory(url()).createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            return session.createConsumer(destination).receive(LONG_MS);
        }
    }

    private List<Message> seen(String label, List<Message> messages) throws JMSException {
        List<String> shown = new ArrayList<>();
        for (Message message : messages) {
            shown.add(show(message));
        }
        say("%s: [%s]", label, String.join(", ", shown));
        return messages;
    }

    /** What a browser sees. */
    void browse(String label, QueueBrowser browser) throws JMSException {
        List<String> shown = new ArrayList<>();
        for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
            shown.add(show((Message) found.nextElement()));
        }
        browser.close();
        say("%s: [%s]", label, String.join(", ", shown));
    }

    void browse(String label, Queue queue) throws JMSException {
        browse(label, auto().createBrowser(queue));
    }
}
