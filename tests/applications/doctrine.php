<?php
// A shop by PDO, Doctrine DBAL and Doctrine ORM: `doctrine.php create` makes its tables and rows, `walk` uses each way to insert
// and reads everything again, `diff` prints what the schema tool would change. It prints no key. ORM 2 asks for a key by the name of
// its sequence, by currval() or nextval(): only with ORM in the environment.
declare(strict_types=1);
use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Mapping as ORM;
require_once 'Doctrine/DBAL/autoload.php';
require_once 'Doctrine/ORM/autoload.php';

#[ORM\Entity]
#[ORM\InheritanceType('JOINED'), ORM\DiscriminatorColumn(name: 'kind', type: 'string'), ORM\DiscriminatorMap(['party' => Party::class, 'person' => Person::class])]
class Party
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public $id;
    #[ORM\Column(type: 'string')]
    public string $name = '';
}

#[ORM\Entity]
class Person extends Party
{
    #[ORM\ManyToOne(targetEntity: Party::class)]
    public ?Party $employer = null;
    #[ORM\OneToMany(targetEntity: Purchase::class, mappedBy: 'buyer', cascade: ['persist', 'remove'])]
    public $purchases = [];
}

#[ORM\Entity]
class Purchase
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public $id;
    #[ORM\ManyToOne(targetEntity: Person::class, inversedBy: 'purchases')]
    public ?Person $buyer = null;
    #[ORM\ManyToMany(targetEntity: Article::class, cascade: ['persist'])]
    public $articles = [];
    #[ORM\Version, ORM\Column(type: 'integer')]
    public int $version = 1;
}

#[ORM\Entity]
class Article
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public $id;
    #[ORM\Column(type: 'string')]
    public string $name = '';
}

#[ORM\Entity]
class Ticket
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'SEQUENCE'), ORM\Column(type: 'bigint')]
    #[ORM\SequenceGenerator(sequenceName: 'ticket_numbers', allocationSize: 1)]
    public $id;
    #[ORM\Column(type: 'string')]
    public string $text = '';
}

$settings = ['driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'user' => getenv('PGUSER'), 'dbname' => getenv('PGDATABASE')];
$configuration = new Doctrine\ORM\Configuration();
$configuration->setMetadataDriverImpl(new Doctrine\ORM\Mapping\Driver\AttributeDriver([__DIR__]));
$configuration->setProxyDir(sys_get_temp_dir());
$configuration->setProxyNamespace('Proxies');
$configuration->setAutoGenerateProxyClasses(Doctrine\Common\Proxy\AbstractProxyFactory::AUTOGENERATE_EVAL);
// flake's own views and tables are not the application's.
$configuration->setSchemaAssetsFilter(fn ($name) => !str_starts_with(is_string($name) ? $name : $name->getName(), 'flake'));
$connection = DriverManager::getConnection($settings, $configuration);
$manager = new Doctrine\ORM\EntityManager($connection, $configuration);
$classes = array_map([$manager, 'getClassMetadata'], ['Party', 'Person', 'Purchase', 'Article', 'Ticket']);
$tool = new Doctrine\ORM\Tools\SchemaTool($manager);

function buy($manager, string $prefix, int $people): array
{
    $made = [];
    $employer = new Party();
    $employer->name = "$prefix employer";
    $manager->persist($employer);
    for ($n = 0; $n < $people; $n++) {
        $person = new Person();
        [$person->name, $person->employer] = ["$prefix $n", $employer];
        $purchase = new Purchase();
        $purchase->buyer = $person;
        for ($a = 0; $a < 3; $a++) {
            $article = new Article();
            $article->name = "$prefix article $n $a";
            $purchase->articles[] = $article;
        }
        $manager->persist($person);
        $manager->persist($purchase);
        $made[] = $person;
    }
    $manager->flush();
    return $made;
}

switch ($argv[1]) {
    case 'create':
        $tool->createSchema($classes);
        $connection->executeStatement('CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, text TEXT)');
        $connection->executeStatement('CREATE TABLE counted (id SERIAL PRIMARY KEY, text TEXT)');
        buy($manager, 'first', 50);
        break;
    case 'diff':
        foreach ($tool->getUpdateSchemaSql($classes, true) as $statement) {
            echo "$statement\n";
        }
        break;
    case 'walk':
        $pdo = new PDO(sprintf('pgsql:host=%s;dbname=%s;user=%s', ...array_map('getenv', ['PGHOST', 'PGDATABASE', 'PGUSER'])));
        $pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
        $is = fn ($id, $text) => var_export((bool) $pdo->query("SELECT text = '$text' FROM notes WHERE id = " . (int) $id)->fetchColumn(), true);
        $pdo->exec("INSERT INTO notes (text) VALUES ('by PDO')");
        echo 'PDO lastInsertId: ', $is($pdo->lastInsertId(), 'by PDO'), "\n";
        $pdo->exec("INSERT INTO counted (text) VALUES ('counted')");
        $last = $pdo->lastInsertId();
        echo 'PDO lastInsertId of a sequence that counts: ', $last < 1000 ? 'small' : 'large', "\n";
        $pdo->beginTransaction();
        $pdo->exec("INSERT INTO notes (text) VALUES ('rolled back')");
        $pdo->rollBack();
        $statement = $pdo->prepare('INSERT INTO notes (text) VALUES (?)');
        foreach (range(1, 100) as $n) {
            $statement->execute(["prepared $n"]);
            $right[] = $is($pdo->lastInsertId(), "prepared $n");
        }
        echo 'PDO prepared: ', implode(array_unique($right)), "\n";
        if (getenv('ORM')) {
            $pdo->exec("INSERT INTO notes (text) VALUES ('by name')");
            echo 'PDO lastInsertId by name: ', $is($pdo->lastInsertId('notes_id_seq'), 'by name'), "\n";
        }
        $connection->insert('notes', ['text' => 'by DBAL']);
        echo 'DBAL lastInsertId: ', $is($connection->lastInsertId(), 'by DBAL'), "\n";
        $connection->createQueryBuilder()->insert('notes')->values(['text' => "'by builder'"])->executeStatement();
        echo 'DBAL query builder: ', $is($connection->lastInsertId(), 'by builder'), "\n";
        if (!getenv('ORM')) {
            break;
        }
        $column = $connection->createSchemaManager()->listTableColumns('notes')['id'];
        echo 'DBAL autoincrement: ', var_export($column->getAutoincrement(), true), "\n";
        $made = buy($manager, 'second', 20);
        [$one, $two] = $made;
        echo 'ORM distinct keys: ', count(array_unique(array_map(fn ($person) => $person->id, $made))), "\n";
        $keys = array_map(fn ($person) => $person->id, $made);
        $manager->clear();
        foreach ($keys as $n => $key) {
            $person = $manager->find(Person::class, $key);
            $good[] = $person->name === "second $n" && $person->employer->name === 'second employer'
                && count($person->purchases) === 1 && count($person->purchases[0]->articles) === 3;
        }
        echo 'ORM found: ', count(array_filter($good)), "\n";
        $person->name = 'renamed';
        $person->purchases[0]->articles->remove(0);
        $manager->flush();
        $manager->remove($person->purchases[0]);
        $manager->remove($person);
        $manager->flush();
        $manager->clear();
        echo 'ORM removed: ', var_export($manager->find(Person::class, $key) === null, true), "\n";
        $query = $manager->createQuery('SELECT p, a FROM Purchase p JOIN p.articles a JOIN p.buyer b WHERE b.id = :id');
        echo 'ORM by query: ', count($query->setParameter('id', $keys[0])->getResult()), "\n";
        foreach (range(1, 25) as $n) {
            $tickets[] = $ticket = new Ticket();
            $manager->persist($ticket);
        }
        $manager->flush();
        echo 'ORM sequence: ', count(array_unique(array_map(fn ($ticket) => $ticket->id, $tickets))), "\n";
        foreach (['party', 'person', 'purchase', 'article', 'notes'] as $table) {
            echo "$table: ", $connection->fetchOne("SELECT count(*) FROM $table"), "\n";
        }
}
