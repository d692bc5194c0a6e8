import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import javax.persistence.*;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/**
 * A shop by Hibernate: `create` makes tables and rows, `walk` uses them and reads everything again. It prints no key. Invoices ask their
 * sequence before each INSERT; with SEQUENCES=no they are left out.
 */
public class Hibernate {
  @Entity(name = "customers")
  @Inheritance(strategy = InheritanceType.JOINED)
  public static class Customer {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    String name;
    @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL) List<Order> orders = new ArrayList<Order>();
  }

  @Entity(name = "companies")
  public static class Company extends Customer {
    String number;
  }

  @Entity(name = "orders")
  public static class Order {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @ManyToOne(optional = false) Customer customer;
    @ManyToMany(cascade = CascadeType.PERSIST) Set<Item> items = new HashSet<Item>();
    @Version int version;
  }

  @Entity(name = "items")
  public static class Item {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    String name;
  }

  @Entity(name = "invoices")
  public static class Invoice {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "numbers")
    @SequenceGenerator(name = "numbers", sequenceName = "invoice_numbers", allocationSize = 1)
    Long id;
    @ManyToOne(fetch = FetchType.LAZY) Order order;
  }

  static final boolean SEQUENCES = !"no".equals(System.getenv("SEQUENCES"));

  public static void main(String[] arguments) {
    java.util.logging.LogManager.getLogManager().reset();
    Configuration configuration = new Configuration();
    for (Class<?> one : List.of(Customer.class, Company.class, Order.class, Item.class, Invoice.class)) configuration.addAnnotatedClass(one);
    configuration.setProperty("hibernate.connection.driver_class", "org.postgresql.Driver");
    configuration.setProperty("hibernate.connection.url", System.getenv("JDBC_URL"));
    configuration.setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect");
    configuration.setProperty("hibernate.jdbc.batch_size", "20");
    configuration.setProperty("hibernate.id.new_generator_mappings", "true");
    if (arguments[0].equals("create")) configuration.setProperty("hibernate.hbm2ddl.auto", "create");
    if (arguments[0].equals("walk")) configuration.setProperty("hibernate.hbm2ddl.auto", "validate");
    SessionFactory factory = configuration.buildSessionFactory();
    if (arguments[0].equals("create")) make(factory, "old", 50);
    else walk(factory, arguments.length > 1 ? Integer.parseInt(arguments[1]) : 30);
    factory.close();
  }

  static List<Long> make(SessionFactory factory, String name, int count) {
    Session session = factory.openSession();
    session.beginTransaction();
    List<Long> keys = new ArrayList<Long>();
    for (int n = 0; n < count; n++) {
      Customer customer = n % 5 == 0 ? new Company() : new Customer();
      customer.name = name + " " + n;
      for (int o = 0; o < 2; o++) {
        Order order = new Order();
        order.customer = customer;
        for (int i = 0; i < 3; i++) {
          Item item = new Item();
          item.name = name + " item " + i;
          order.items.add(item);
        }
        customer.orders.add(order);
      }
      session.persist(customer);
      if (SEQUENCES) {
        for (Order order : customer.orders) {
          Invoice invoice = new Invoice();
          invoice.order = order;
          session.persist(invoice);
        }
      }
      keys.add(customer.id);
    }
    session.getTransaction().commit();
    session.close();
    return keys;
  }

  static void walk(SessionFactory factory, int count) {
    List<Long> keys = make(factory, "new", count);
    System.out.println("distinct " + (new HashSet<Long>(keys).size() == count));
    Session session = factory.openSession();
    session.beginTransaction();
    int right = 0;
    for (int n = 0; n < count; n++) {
      Customer customer = (Customer) session.get(Customer.class, keys.get(n));
      boolean is = customer.name.equals("new " + n) && customer.orders.size() == 2 && customer instanceof Company == (n % 5 == 0);
      for (Order order : customer.orders) is &= order.items.size() == 3 && order.customer == customer;
      if (is) right++;
      customer.name = "renamed " + n;
    }
    System.out.println("found " + right);
    session.getTransaction().commit();
    session.clear();
    session.beginTransaction();
    Object renamed = session.createQuery("select count(*) from customers c where c.name like 'renamed%' and c.id in (:keys)")
        .setParameterList("keys", keys).uniqueResult();
    System.out.println("renamed " + renamed);
    if (SEQUENCES) {
      Object invoices = session.createQuery("select count(*) from invoices i join i.order o where o.customer.id in (:keys)")
          .setParameterList("keys", keys).uniqueResult();
      System.out.println("invoices " + invoices);
      session.createQuery("delete from invoices i where i.order.id in (select o.id from orders o where o.customer.id = :key)")
          .setParameter("key", keys.get(0)).executeUpdate();
    }
    session.delete(session.load(Customer.class, keys.get(0)));
    session.getTransaction().commit();
    session.beginTransaction();
    Customer nobody = new Customer();
    nobody.name = "rolled back";
    session.persist(nobody);
    session.getTransaction().rollback();
    session.clear();
    System.out.println("deleted " + (session.get(Customer.class, keys.get(0)) == null) + " " + (session.get(Customer.class, nobody.id) == null));
    TreeMap<String, Object> counts = new TreeMap<String, Object>();
    for (String table : List.of("customers", "companies", "orders", "items", "invoices"))
      counts.put(table, session.createQuery("select count(*) from " + table).uniqueResult());
    System.out.println(counts);
    session.close();
  }
}
