import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LOCAL, type Principal } from '../../src/library/access/index.ts';
import { Bodies, type HeldBody } from '../../src/library/access/traffic.ts';
import type { TenantId } from '../../src/events/index.ts';

const MOST = { caller: 10, tenant: 15, process: 30 };

function caller(id: string, tenant = 'acme'): Principal {
  return { ...LOCAL, id: `key:${id}`, tenant: tenant as TenantId };
}

test('unfinished bodies are bounded per caller, tenant and process', () => {
  const bodies = new Bodies(MOST);
  const [a, b] = [bodies.open(caller('a')), bodies.open(caller('b'))];
  expect(a.grow(10)).toBeNull();
  expect(bodies.open(caller('a')).grow(1)).toEqual({ full: 'caller', limit: 10 });
  expect(b.grow(6)).toEqual({ full: 'tenant', limit: 15 });
  expect(b.grow(5)).toBeNull();
  expect(bodies.open(caller('h', 'default')).grow(10)).toBeNull();
  expect(bodies.open(caller('i', 'default')).grow(6)).toEqual({ full: 'process', limit: 30 });
  a.end();
  expect(bodies.open(caller('a')).grow(10)).toBeNull();
});

test('bodies in any order stay within their bounds and leave nothing', () => {
  const step = fc.record({
    who: fc.constantFrom('a', 'b', 'c'),
    tenant: fc.constantFrom('acme', 'zeta'),
    bytes: fc.nat(12),
    ends: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const bodies = new Bodies(MOST);
      const open: { body: HeldBody; held: number; who: string; tenant: string }[] = [];
      const sum = (of: (each: (typeof open)[number]) => boolean) =>
        open.filter(of).reduce((total, { held }) => total + held, 0);
      for (const { who, tenant, bytes, ends } of steps) {
        if (ends) open.shift()?.body.end();
        const body = bodies.open(caller(who, tenant));
        const full = body.grow(bytes);
        open.push({ body, held: full ? 0 : bytes, who, tenant });
        expect(sum((each) => each.who === who && each.tenant === tenant)).toBeLessThanOrEqual(MOST.caller);
        expect(sum((each) => each.tenant === tenant)).toBeLessThanOrEqual(MOST.tenant);
        expect(sum(() => true)).toBeLessThanOrEqual(MOST.process);
      }
      for (const { body } of open) body.end();
      const [one, two, house] = [caller('a'), caller('z', 'zeta'), caller('h', 'default')];
      for (const each of [one, two, house]) expect(bodies.open(each).grow(MOST.caller)).toBeNull();
    }),
  );
});
