package interop;

import java.util.function.BiConsumer;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.command.Command;
import org.apache.activemq.command.CommandTypes;
import org.apache.activemq.command.ConnectionId;
import org.apache.activemq.command.ConnectionInfo;
import org.apache.activemq.command.ConsumerId;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.LocalTransactionId;
import org.apache.activemq.command.MessageAck;
import org.apache.activemq.command.MessageId;
import org.apache.activemq.command.MessagePull;
import org.apache.activemq.command.ProducerId;
import org.apache.activemq.command.ProducerInfo;
import org.apache.activemq.command.RemoveInfo;
import org.apache.activemq.command.SessionId;
import org.apache.activemq.command.SessionInfo;
import org.apache.activemq.command.TransactionInfo;
import org.apache.activemq.ActiveMQMessageConsumer;

/** Commands and bytes that no client should send. */
final class BadInput implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("wrong password", stage -> login(stage, Stage.USER, "wrong"));
        cases.accept("unknown user", stage -> login(stage, "nobody", Stage.PASSWORD));
        cases.accept("no user", stage -> login(stage, null, null));
        for (int type : new int[] {0, 1, 2, 3, 4, 6}) {
            cases.accept("acknowledgement of type " + type + " for what was never dispatched", stage ->
                    acknowledge(stage, type, false, 1));
            cases.accept("acknowledgement of type " + type + " with a wrong count", stage ->
                    acknowledge(stage, type, true, 3));
        }
        cases.accept("poison in a transaction", BadInput::poisonInTransaction);
        cases.accept("acknowledgement twice", BadInput::twice);
        cases.accept("acknowledgement for an unknown consumer", stage -> {
            ActiveMQConnection connection = stage.connect();
            MessageAck ack = new MessageAck();
            ack.setConsumerId(new ConsumerId(session(connection), 99));
            ack.setDestination(new ActiveMQQueue(stage.own("")));
            ack.setAckType(MessageAck.STANDARD_ACK_TYPE);
            ack.setLastMessageId(new MessageId("ID:a-1-1-1:1:1:1:1"));
            ack.setMessageCount(1);
            sync(stage, connection, "acknowledgement", ack);
        });
        cases.accept("consumer of an unknown session", stage -> {
            ActiveMQConnection connection = stage.connect();
            sync(stage, connection, "consumer", consumer(stage, new SessionId(connection.getConnectionInfo()
                    .getConnectionId(), 99)));
        });
        cases.accept("consumer without destination", stage -> {
            ActiveMQConnection connection = stage.connect();
            connection.createSession(false, 1);
            ConsumerInfo info = consumer(stage, session(connection));
            info.setDestination(null);
            sync(stage, connection, "consumer", info);
        });
        cases.accept("the same consumer twice", stage -> {
            ActiveMQConnection connection = stage.connect();
            connection.createSession(false, 1);
            sync(stage, connection, "first", consumer(stage, session(connection)));
            sync(stage, connection, "second", consumer(stage, session(connection)));
        });
        cases.accept("producer of an unknown session", stage -> {
            ActiveMQConnection connection = stage.connect();
            SessionId unknown = new SessionId(connection.getConnectionInfo().getConnectionId(), 99);
            sync(stage, connection, "producer", new ProducerInfo(new ProducerId(unknown, 1)));
        });
        cases.accept("removing what is not there", BadInput::removals);
        cases.accept("pull of an unknown consumer", stage -> {
            ActiveMQConnection connection = stage.connect();
            connection.createSession(false, 1);
            MessagePull pull = new MessagePull();
            pull.setConsumerId(new ConsumerId(session(connection), 99));
            pull.setDestination(new ActiveMQQueue(stage.own("")));
            sync(stage, connection, "pull", pull);
        });
        cases.accept("send by an unknown producer", stage -> send(stage, true));
        cases.accept("send without destination", stage -> send(stage, false));
        cases.accept("unknown local transactions", BadInput::transactions);
        cases.accept("a failed asynchronous acknowledgement", BadInput::asynchronous);
        cases.accept("the same session twice", stage -> {
            ActiveMQConnection connection = stage.connect();
            connection.createSession(false, 1);
            sync(stage, connection, "session", new SessionInfo(session(connection)));
        });
        bytes(cases);
    }

    private static void bytes(BiConsumer<String, Body> cases) {
        cases.accept("bytes: not our magic", stage -> raw(stage, false, peer ->
                peer.send("\0\0\0\u0020\u0001SomethingElse and so on and on".getBytes("ISO-8859-1"))));
        cases.accept("bytes: HTTP", stage -> raw(stage, false, peer ->
                peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".getBytes("US-ASCII"))));
        cases.accept("bytes: unknown command", stage -> raw(stage, true, peer ->
                peer.send((byte) 0, (byte) 0, (byte) 0, (byte) 2, (byte) 99, (byte) 0)));
        cases.accept("bytes: truncated command", stage -> raw(stage, true, peer -> {
            byte[] whole = peer.encoded(connectionInfo("a"));
            whole[3] -= 4;
            peer.send(java.util.Arrays.copyOf(whole, whole.length - 4));
        }));
        cases.accept("bytes: negative size", stage -> raw(stage, true, peer ->
                peer.send((byte) -1, (byte) -1, (byte) -1, (byte) -1, (byte) 3)));
        cases.accept("bytes: size of two gigabytes", stage -> raw(stage, true, peer ->
                peer.send((byte) 127, (byte) -1, (byte) -1, (byte) -1, (byte) 3)));
        cases.accept("bytes: command before the connection", stage -> raw(stage, true, peer -> {
            SessionInfo info = new SessionInfo(new SessionId(new ConnectionId("ID:raw-1-1-1:1"), 1));
            info.setCommandId(1);
            info.setResponseRequired(true);
            peer.send(info);
        }));
        cases.accept("bytes: connection before the negotiation", stage -> raw(stage, false, peer ->
                peer.send(connectionInfo("b"))));
        cases.accept("bytes: two connections on one wire", stage -> raw(stage, true, peer -> {
            peer.send(connectionInfo("c"));
            peer.send(connectionInfo("d"));
        }));
        cases.accept("bytes: removal of what can't be removed", stage -> raw(stage, true, peer -> {
            peer.send(connectionInfo("e"));
            RemoveInfo remove = new RemoveInfo(new LocalTransactionId(new ConnectionId("ID:raw-e-1-1:1"), 1));
            remove.setCommandId(2);
            remove.setResponseRequired(true);
            peer.send(remove);
        }));
        cases.accept("bytes: a field of the wrong type", stage -> raw(stage, true, peer -> {
            peer.send(connectionInfo("f"));
            ConsumerInfo info = consumer(stage, new SessionId(new ConnectionId("ID:raw-f-1-1:1"), 1));
            info.setCommandId(2);
            info.setResponseRequired(true);
            peer.send(withAnotherType(peer.encoded(info)));
        }));
        cases.accept("bytes: a response nobody waits for", stage -> raw(stage, true, peer -> {
            org.apache.activemq.command.Response response = new org.apache.activemq.command.Response();
            response.setCorrelationId(99);
            peer.send(response);
        }));
    }

    /** The same bytes, but for the type of the destination: a connection id, which is a text as well. */
    private static byte[] withAnotherType(byte[] frame) {
        for (int at = 0; at + 2 < frame.length; at++) {
            if (frame[at] == 1 && frame[at + 1] == CommandTypes.ACTIVEMQ_QUEUE && frame[at + 2] == 1) {
                frame[at + 1] = CommandTypes.CONNECTION_ID;
                return frame;
            }
        }
        throw new IllegalStateException("there is no destination in it");
    }

    private interface Sending {
        void run(RawPeer peer) throws Exception;
    }

    private static void raw(Stage stage, boolean negotiates, Sending sending) throws Exception {
        ActiveMQConnection neighbour = stage.connect();
        try (RawPeer peer = new RawPeer(stage, 0)) {
            if (negotiates) {
                peer.negotiate();
            }
            sending.run(peer);
            stage.say("%s", peer.seen(1_500));
        }
        Stage.barrier(neighbour);
        stage.say("others go on");
    }

    private static ConnectionInfo connectionInfo(String name) {
        ConnectionInfo info = new ConnectionInfo(new ConnectionId("ID:raw-" + name + "-1-1:1"));
        info.setClientId("raw-" + name);
        info.setUserName(Stage.USER);
        info.setPassword(Stage.PASSWORD);
        info.setCommandId(1);
        info.setResponseRequired(true);
        return info;
    }

    private static SessionId session(ActiveMQConnection connection) {
        return new SessionId(connection.getConnectionInfo().getConnectionId(), 1);
    }

    private static ConsumerInfo consumer(Stage stage, SessionId session) {
        ConsumerInfo info = new ConsumerInfo(new ConsumerId(session, 77));
        info.setDestination(new ActiveMQQueue(stage.own("")));
        info.setPrefetchSize(10);
        return info;
    }

    private static void sync(Stage stage, ActiveMQConnection connection, String what, Command command) {
        stage.attempt(what, () -> connection.syncSendPacket(command));
        stage.attempt("connection goes on", () -> Stage.barrier(connection));
    }

    private static void login(Stage stage, String user, String password) {
        stage.attempt("login", () -> {
            ActiveMQConnection connection = (ActiveMQConnection)
                    new org.apache.activemq.ActiveMQConnectionFactory(user, password, stage.url()).createConnection();
            try {
                connection.start();
                Stage.barrier(connection);
            } finally {
                connection.close();
            }
        });
    }

    private static void acknowledge(Stage stage, int type, boolean dispatched, int count) throws Exception {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        ActiveMQMessage message = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        MessageAck ack = new MessageAck();
        ack.setConsumerId(((ActiveMQMessageConsumer) consumer).getConsumerId());
        ack.setDestination(message.getDestination());
        ack.setAckType((byte) type);
        MessageId id = message.getMessageId();
        if (!dispatched) {
            id = new MessageId(id.getProducerId(), 4711);
        }
        if (type != MessageAck.INDIVIDUAL_ACK_TYPE) {
            ack.setFirstMessageId(id);
        }
        ack.setLastMessageId(id);
        ack.setMessageCount(count);
        if (type == MessageAck.POISON_ACK_TYPE) {
            ack.setPoisonCause(new Throwable("poison"));
        }
        sync(stage, connection, "acknowledgement", ack);
        stage.browse("not acknowledged", stage.queue());
        connection.close();
        stage.drain("left", stage.queue());
        stage.drain("dead", new ActiveMQQueue("ActiveMQ.DLQ"));
    }

    private static void twice(Stage stage) throws Exception {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        ActiveMQMessage message = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        for (String time : new String[] {"first", "second"}) {
            MessageAck ack = new MessageAck();
            ack.setConsumerId(((ActiveMQMessageConsumer) consumer).getConsumerId());
            ack.setDestination(message.getDestination());
            ack.setAckType(MessageAck.STANDARD_ACK_TYPE);
            ack.setFirstMessageId(message.getMessageId());
            ack.setLastMessageId(message.getMessageId());
            ack.setMessageCount(1);
            sync(stage, connection, time, ack);
        }
    }

    private static void poisonInTransaction(Stage stage) throws Exception {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        ActiveMQMessage message = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        LocalTransactionId transaction =
                new LocalTransactionId(connection.getConnectionInfo().getConnectionId(), 99);
        sync(stage, connection, "begin", new TransactionInfo(
                connection.getConnectionInfo().getConnectionId(), transaction, TransactionInfo.BEGIN));
        MessageAck ack = new MessageAck();
        ack.setConsumerId(((ActiveMQMessageConsumer) consumer).getConsumerId());
        ack.setDestination(message.getDestination());
        ack.setAckType(MessageAck.POISON_ACK_TYPE);
        ack.setTransactionId(transaction);
        ack.setLastMessageId(message.getMessageId());
        ack.setFirstMessageId(message.getMessageId());
        ack.setMessageCount(1);
        sync(stage, connection, "poison", ack);
        sync(stage, connection, "commit", new TransactionInfo(connection.getConnectionInfo().getConnectionId(),
                transaction, TransactionInfo.COMMIT_ONE_PHASE));
        connection.close();
        stage.drain("left", stage.queue());
        stage.drain("dead", new ActiveMQQueue("ActiveMQ.DLQ"));
    }

    private static void removals(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect();
        connection.createSession(false, 1);
        sync(stage, connection, "consumer", new ConsumerInfo(new ConsumerId(session(connection), 99)).createRemoveCommand());
        sync(stage, connection, "producer", new ProducerInfo(new ProducerId(session(connection), 99)).createRemoveCommand());
        sync(stage, connection, "session", new SessionInfo(new SessionId(connection.getConnectionInfo()
                .getConnectionId(), 99)).createRemoveCommand());
    }

    private static void send(Stage stage, boolean addressed) throws Exception {
        ActiveMQConnection connection = stage.connect();
        connection.createSession(false, 1);
        ActiveMQTextMessage message = new ActiveMQTextMessage();
        message.setText("m1");
        ProducerId producer = new ProducerId(session(connection), 99);
        message.setProducerId(producer);
        message.setMessageId(new MessageId(producer, 1));
        message.setPersistent(true);
        if (addressed) {
            message.setDestination(new ActiveMQQueue(stage.own("")));
        } else {
            connection.syncSendPacket(new ProducerInfo(producer));
        }
        sync(stage, connection, "send", message);
        stage.drain("left", stage.queue());
    }

    private static void transactions(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect();
        ConnectionId id = connection.getConnectionInfo().getConnectionId();
        LocalTransactionId unknown = new LocalTransactionId(id, 99);
        sync(stage, connection, "commit", new TransactionInfo(id, unknown, TransactionInfo.COMMIT_ONE_PHASE));
        sync(stage, connection, "rollback", new TransactionInfo(id, unknown, TransactionInfo.ROLLBACK));
        sync(stage, connection, "prepare", new TransactionInfo(id, unknown, TransactionInfo.PREPARE));
        sync(stage, connection, "end", new TransactionInfo(id, unknown, TransactionInfo.END));
        sync(stage, connection, "begin", new TransactionInfo(id, unknown, TransactionInfo.BEGIN));
        sync(stage, connection, "begin again", new TransactionInfo(id, unknown, TransactionInfo.BEGIN));
        sync(stage, connection, "commit", new TransactionInfo(id, unknown, TransactionInfo.COMMIT_ONE_PHASE));
        sync(stage, connection, "unknown operation", new TransactionInfo(id, unknown, (byte) 42));
    }

    private static void asynchronous(Stage stage) throws Exception {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection = stage.connect();
        java.util.concurrent.LinkedBlockingQueue<String> errors = new java.util.concurrent.LinkedBlockingQueue<>();
        connection.setClientInternalExceptionListener(error -> errors.add("internal " + Stage.classes(error)));
        connection.setExceptionListener(error -> errors.add("listener " + Stage.classes(error)));
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        ActiveMQMessage message = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        MessageAck ack = new MessageAck();
        ack.setConsumerId(((ActiveMQMessageConsumer) consumer).getConsumerId());
        ack.setDestination(message.getDestination());
        ack.setAckType(MessageAck.STANDARD_ACK_TYPE);
        MessageId never = new MessageId(message.getMessageId().getProducerId(), 4711);
        ack.setFirstMessageId(never);
        ack.setLastMessageId(never);
        ack.setMessageCount(1);
        connection.asyncSendPacket(ack);
        String first = errors.poll(5, java.util.concurrent.TimeUnit.SECONDS);
        stage.say("told: %s", first);
        stage.attempt("connection goes on", () -> Stage.barrier(connection));
        Message next = consumer.receive(Stage.LONG_MS);
        stage.say("goes on with %s", Stage.show(next));
    }
}
