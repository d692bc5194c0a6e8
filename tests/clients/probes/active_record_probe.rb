# Reports what ActiveRecord does with IDs, as a line of JSON. It is called with IDs as texts.

require "active_record"

MANY = 10_000
mode, *texts = ARGV
ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV["PGDATABASE"])

class Kept < ActiveRecord::Base
  self.table_name = "kept"
  self.primary_key = "n"
end

class Made < ActiveRecord::Base
  self.table_name = "made"
end

class Many < ActiveRecord::Base
  self.table_name = "many"
end

def value(sql, *parameters)
  ActiveRecord::Base.connection.select_value(ActiveRecord::Base.sanitize_sql([sql, *parameters]))
end

def keep(id, other)
  back, many = Kept.insert_all!([{ "id" => id, "many" => [id, other] }], returning: %w[id many]).cast_values.first
  [back.to_s, many.map { |one| one&.to_s }, Kept.where("id = ?", back).count]
end

kept = texts.map { |text| keep(text.to_i, text.to_i) }
made = Made.create!
null = Kept.create!
items = MANY.times.map { |number| { item: number.to_s } }
keys = Many.insert_all(items, returning: :id).rows.flatten
stored = Many.pluck(:id, :item).to_h
begin
  value("SELECT flake_timestamp(-1)")
rescue ActiveRecord::StatementInvalid => error
  raised = [error.class.name, error.cause.result.error_field(PG::PG_DIAG_SQLSTATE)]
end
puts JSON.generate(
  kept: kept,
  hole: keep(42, nil),
  null: value("SELECT id FROM kept WHERE n = ?", null.n),
  read: texts.map { |text| JSON.parse(value("SELECT jsonb_build_object('id', CAST(? AS bigint))", text.to_i))["id"].to_s },
  written: texts.map { |text| value("SELECT document ->> 'id' FROM kept WHERE n = ?", Kept.create!(document: { id: text.to_i }).n) },
  made: [made.id.to_s, Made.where(id: made.id).count],
  error: raised,
  many: items.each_with_index.count { |row, number| stored[keys[number]] == row[:item] }
)
