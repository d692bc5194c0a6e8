import java.util.ArrayDeque;
import java.util.Queue;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.id.IdentifierGenerator;

/** Takes fifty IDs with one query, so that Hibernate can insert in batches. */
public class FlakeGenerator implements IdentifierGenerator {
    private final Queue<Long> ids = new ArrayDeque<>();

    @Override
    public synchronized Object generate(SharedSessionContractImplementor session, Object entity) {
        if (ids.isEmpty()) session.doReturningWork(connection -> {
            try (var query = connection.createStatement(); var rows = query.executeQuery("SELECT flake_batch('twitter', 50)")) {
                while (rows.next()) ids.add(rows.getLong(1));
                return null;
            }
        });
        return ids.remove();
    }
}
