# ActiveRecord: an ID is an Integer.

require "active_record"

ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV["PGDATABASE"])

ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  enable_extension "flake"
  create_table :orders, id: :bigint, default: -> { "flake_next('twitter')" } do |t|
    t.text :item
  end
end

class Order < ActiveRecord::Base; end

order = Order.create!(item: "tea")
puts "#{order.id} #{Order.find(order.id).item}"

# Many rows in one statement; their IDs increase.
items = 1000.times.map { |number| { item: "cup #{number}" } }
ids = Order.insert_all(items, returning: :id).rows.flatten
puts Order.where(id: ids).order(:id).pluck(:item) == items.map { |row| row[:item] }

begin
  Order.connection.select_value("SELECT flake_timestamp(-1)")
rescue ActiveRecord::RangeError => error
  result = error.cause.result
  puts "#{result.error_field(PG::PG_DIAG_SQLSTATE)} #{result.error_field(PG::PG_DIAG_MESSAGE_HINT)}"
end
