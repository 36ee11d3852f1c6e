import { test } from 'vitest';

test.skip('skipped: no MongoDB, no Redis: the behaviour suites in the distributed mode', () => undefined);
