from django.db import models


class Customer(models.Model):
    name = models.TextField()


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE)
    item = models.TextField()
