using Microsoft.EntityFrameworkCore;
using Microsoft.EntityFrameworkCore.ChangeTracking;
using Microsoft.EntityFrameworkCore.ValueGeneration;

/// <summary>Takes fifty IDs with one query, as HiLo does with a sequence.</summary>
public class FlakeGenerator : ValueGenerator<long>
{
    private readonly Queue<long> ids = new();

    public override bool GeneratesTemporaryValues => false;

    public override long Next(EntityEntry entry)
    {
        lock (ids)
        {
            if (ids.Count == 0)
                foreach (var id in entry.Context.Database.SqlQueryRaw<long>("SELECT flake_batch('twitter', 50) AS \"Value\"").AsEnumerable())
                    ids.Enqueue(id);
            return ids.Dequeue();
        }
    }
}
