from pilothouse.storage.backends.etcd.leases import MOST_KEYS, LeasePool


class Grants:
    def __init__(self):
        self.seconds, self.now = [], 1000.0
        self.pool = LeasePool(self.grant, 60, lambda: self.now)

    async def grant(self, seconds):
        self.seconds.append(seconds)
        return len(self.seconds)


async def test_a_lease_is_shared_for_a_minute():
    grants = Grants()
    assert await grants.pool.lease_for(3600) == 1
    grants.now += 59
    assert await grants.pool.lease_for(3600) == 1
    grants.now += 2
    assert await grants.pool.lease_for(3600) == 2
    assert grants.seconds == [3660, 3660]


async def test_short_lives_are_not_stretched_by_much():
    grants = Grants()
    await grants.pool.lease_for(15)
    await grants.pool.lease_for(100)
    assert grants.seconds == [15, 105]


async def test_a_lease_that_lasts_much_longer_is_not_used():
    grants = Grants()
    await grants.pool.lease_for(3600)
    assert await grants.pool.lease_for(60) == 2


async def test_a_lease_has_so_many_keys_and_no_more():
    grants = Grants()
    leases = [await grants.pool.lease_for(3600) for _ in range(MOST_KEYS + 1)]
    assert leases == [1] * MOST_KEYS + [2]


async def test_a_lease_that_has_ended_is_forgotten():
    grants = Grants()
    grants.pool.forget(await grants.pool.lease_for(3600))
    assert await grants.pool.lease_for(3600) == 2
