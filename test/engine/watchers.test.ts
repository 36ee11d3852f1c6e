import { expect, test } from 'vitest';
import type { AppendListener } from '../../src/actors/log/conversation-log.ts';
import type { Event, TenantId } from '../../src/events/index.ts';
import { Watchers } from '../../src/library/facade/live.ts';

const [ACME, ZETA] = ['acme' as TenantId, 'zeta' as TenantId];

function stage() {
  const listeners = new Set<AppendListener>();
  const warnings: unknown[] = [];
  const log = {
    onAppended(listener: AppendListener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const watchers = new Watchers({
    log,
    live: { listen: () => () => {}, recall: () => [], running: () => [] },
    onWarning: (error) => warnings.push(error),
  });
  const say = (tenant: TenantId, conversation: string) => {
    for (const listener of listeners) listener(tenant, { conversation } as Event);
  };
  return { watchers, listeners, warnings, say };
}

test('a watcher gets the events of its tenant, or of the one conversation that it names', () => {
  const { watchers, say } = stage();
  const heard: string[] = [];
  watchers.add(ACME, null, () => heard.push('all of acme'));
  watchers.add(ACME, 'plan', () => heard.push('plan of acme'));
  watchers.add(ZETA, 'plan', () => heard.push('plan of zeta'));
  say(ACME, 'plan');
  expect(heard.splice(0).toSorted()).toEqual(['all of acme', 'plan of acme']);
  say(ACME, 'other');
  expect(heard.splice(0)).toEqual(['all of acme']);
  say(ZETA, 'plan');
  expect(heard).toEqual(['plan of zeta']);
});

test('a watcher that throws affects no other, and is reported to the operator', () => {
  const { watchers, say, warnings } = stage();
  let heard = 0;
  watchers.add(ACME, 'plan', () => {
    throw new Error('broken');
  });
  watchers.add(ACME, 'plan', () => void heard++);
  say(ACME, 'plan');
  expect([heard, warnings]).toMatchObject([1, [{ message: 'broken' }]]);
});

test('nothing is subscribed without watchers, and one function may watch twice', () => {
  const { watchers, listeners, say } = stage();
  let heard = 0;
  const watcher = () => void heard++;
  const offs = [watchers.add(ACME, 'plan', watcher), watchers.add(ACME, 'plan', watcher)];
  say(ACME, 'plan');
  expect([heard, listeners.size]).toEqual([2, 1]);
  offs[0]?.();
  offs[0]?.();
  say(ACME, 'plan');
  expect([heard, listeners.size]).toEqual([3, 1]);
  offs[1]?.();
  say(ACME, 'plan');
  expect([heard, listeners.size]).toEqual([3, 0]);
  watchers.add(ACME, 'plan', watcher);
  say(ACME, 'plan');
  expect([heard, listeners.size]).toEqual([4, 1]);
});

test('unsubscribing affects no other watcher', () => {
  const { watchers, listeners, say } = stage();
  let heard = 0;
  const off = watchers.add(ACME, 'plan', () => {});
  watchers.add(ZETA, null, () => void heard++);
  off();
  say(ZETA, 'plan');
  expect([heard, listeners.size]).toEqual([1, 1]);
});
