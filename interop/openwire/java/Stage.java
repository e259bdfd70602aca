package interop;

import java.lang.reflect.Field;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
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
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.ActiveMQQueueBrowser;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** What a case works with: connections that are closed after it, names of its own, and lines of what it sees. */
final class Stage extends Scene {
    /** For what must not come. */
    static final long SHORT_MS = 300;

    private final URI broker;
    private final List<ActiveMQConnection> connections = Collections.synchronizedList(new ArrayList<>());

    Stage(String url, String name) {
        super(name);
        this.broker = URI.create(url);
    }

    // --- what is seen

    /** Text, deliveries so far and whether the message is marked as redelivered. */
    static String show(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        String text = body(message);
        String mark = message.getJMSRedelivered() ? " redelivered" : "";
        return text + " #" + message.getIntProperty("JMSXDeliveryCount") + mark;
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

    // --- names

    Queue queue() {
        return new ActiveMQQueue(own(""));
    }

    Queue queue(String suffix) {
        return new ActiveMQQueue(own(suffix));
    }

    Topic topic() {
        return new ActiveMQTopic(own(""));
    }

    // --- connections

    /** The URL of the broker with options. */
    String url(String... options) {
        return url(broker.getHost(), broker.getPort(), options);
    }

    static String url(String host, int port, String... options) {
        String base = "tcp://" + host + ":" + port + "?jms.closeTimeout=5000";
        return options.length == 0 ? base : base + "&" + String.join("&", options);
    }

    String host() {
        return broker.getHost();
    }

    int port() {
        return broker.getPort();
    }

    static ActiveMQConnectionFactory factory(String url) {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(USER, PASSWORD, url);
        factory.setTrustAllPackages(true);
        return factory;
    }

    /** A connection that has been started. */
    ActiveMQConnection connect(String... options) throws JMSException {
        return connectAs(null, options);
    }

    ActiveMQConnection connectAs(String clientId, String... options) throws JMSException {
        return started(clientId, url(options));
    }

    ActiveMQConnection started(String clientId, String url) throws JMSException {
        ActiveMQConnection connection = unstarted(clientId, url);
        connection.start();
        return connection;
    }

    ActiveMQConnection unstarted(String clientId, String url) throws JMSException {
        ActiveMQConnection connection = (ActiveMQConnection) factory(url).createConnection();
        connections.add(connection);
        if (clientId != null) {
            connection.setClientID(clientId);
        }
        return connection;
    }

    /** Everything that was sent on the connection before this has been handled by the broker after it. */
    static void barrier(Connection connection) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(null).close();
        session.createProducer(null);
        session.close();
    }

    /** Waits until the connection has been told that a temporary destination is there. */
    static void known(ActiveMQConnection connection, Destination destination) throws Exception {
        until(() -> !connection.isDeleted((ActiveMQDestination) destination));
    }

    /** Waits until the connection has been told that a temporary destination is gone. */
    static void unknown(ActiveMQConnection connection, Destination destination) throws Exception {
        until(() -> connection.isDeleted((ActiveMQDestination) destination));
    }

    /** Waits until the broker has noticed that the connection with that client id broke, and let go of all it had. */
    void gone(String clientId) throws Exception {
        until(() -> {
            try {
                connectAs(clientId).close();
                return true;
            } catch (InvalidClientIDException stillThere) {
                return false;
            }
        });
    }

    @Override
    public void close() {
        for (ActiveMQConnection connection : new ArrayList<>(connections)) {
            try {
                connection.close();
            } catch (JMSException | RuntimeException broken) {
                // The broker or the wire is gone, which may be what the case was about.
            }
        }
    }

    // --- messages

    /** Persistent text messages in one transaction. */
    void send(Destination destination, String... texts) throws JMSException {
        // Without watching, nobody knows that a temporary destination of others is there; then it isn't checked.
        Connection connection = connect("jms.watchTopicAdvisories=false");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        session.commit();
        connection.close();
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
    void receive(String label, MessageConsumer consumer, int count) throws JMSException {
        List<String> seen = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            Message message = consumer.receive(LONG_MS);
            seen.add(show(message));
            if (message == null) {
                break;
            }
        }
        say("%s: %s", label, String.join(", ", seen));
    }

    /** Says that nothing comes, or what comes. */
    void nothing(String label, MessageConsumer consumer) throws JMSException {
        say("%s: %s", label, show(consumer.receive(SHORT_MS)));
    }

    /** Takes what a queue still holds, by pulling, so that the broker says when there is nothing more. */
    List<Message> drain(String label, Destination destination) throws JMSException {
        return drain(label, destination, null);
    }

    List<Message> drain(String label, Destination destination, String selector) throws JMSException {
        return seen(label, pulled(destination, selector));
    }

    /** The same where so many are there: Classic may say that there is nothing more while it still brings them back. */
    List<Message> drain(String label, Destination destination, int count) throws JMSException {
        Connection connection = connect("jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(destination);
        List<Message> messages = new ArrayList<>();
        Message message = null;
        while (messages.size() < count && (message = consumer.receive(LONG_MS)) != null) {
            messages.add(message);
        }
        messages.addAll(rest(consumer));
        connection.close();
        return seen(label, messages);
    }

    /** Takes what earlier cases left, and says nothing of it. */
    void empty(Destination destination) throws JMSException {
        pulled(destination, null);
    }

    private List<Message> pulled(Destination destination, String selector) throws JMSException {
        Connection connection = connect("jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        List<Message> messages = rest(session.createConsumer(destination, selector));
        connection.close();
        return messages;
    }

    /** Takes what a consumer with prefetch 0 can get. */
    List<Message> take(String label, MessageConsumer consumer) throws JMSException {
        return seen(label, rest(consumer));
    }

    /**
     * The same, without a word. Asked twice whether there is nothing more: Classic may say so while it still puts back
     * what others had.
     */
    static List<Message> rest(MessageConsumer consumer) throws JMSException {
        List<Message> messages = new ArrayList<>();
        for (int nothing = 0; nothing < 2; ) {
            Message message = consumer.receiveNoWait();
            if (message == null) {
                nothing++;
            } else {
                messages.add(message);
                nothing = 0;
            }
        }
        return messages;
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
    void browse(String label, Queue queue) throws JMSException {
        browse(label, queue, null);
    }

    void browse(String label, Queue queue, String selector) throws JMSException {
        Connection connection = connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        browse(label, session.createBrowser(queue, selector));
        connection.close();
    }

    void browse(String label, QueueBrowser browser) throws JMSException {
        List<String> seen = new ArrayList<>();
        Enumeration<?> found = browser.getEnumeration();
        for (arrived(browser); found.hasMoreElements(); arrived(browser)) {
            seen.add(show((Message) found.nextElement()));
        }
        browser.close();
        say("%s: [%s]", label, String.join(", ", seen));
    }

    /**
     * Waits until a message or the end is there. The client asks for messages first and for the end after that, so that
     * what arrives between the two, together with the end, is not seen.
     */
    private static void arrived(QueueBrowser browser) throws JMSException {
        try {
            Field consumer = ActiveMQQueueBrowser.class.getDeclaredField("consumer");
            Field done = ActiveMQQueueBrowser.class.getDeclaredField("browseDone");
            consumer.setAccessible(true);
            done.setAccessible(true);
            until(() -> consumer.get(browser) == null || ((AtomicBoolean) done.get(browser)).get()
                    || ((ActiveMQMessageConsumer) consumer.get(browser)).getMessageSize() > 0);
        } catch (JMSException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** Waits until that many messages lie ready in the client. */
    static void ready(MessageConsumer consumer, int count) throws Exception {
        until(() -> ((ActiveMQMessageConsumer) consumer).getMessageSize() >= count);
    }
}
