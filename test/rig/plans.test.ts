import { expect, test } from 'vitest';
import { singleHost, withSchema } from '../../rig/database.ts';
import { conversationsFor, missedRecovery, missingGoals, recoveriesFor } from '../../rig/goals.ts';
import { readOptions } from '../../rig/options.ts';
import { withDatabase, withOptions } from '../support/mongo-url.ts';

test('a run has a separate database on the given server', () => {
  expect(withDatabase('mongodb://127.0.0.1:9/?directConnection=true', 'rig_1')).toBe(
    'mongodb://127.0.0.1:9/rig_1?directConnection=true',
  );
  expect(withDatabase('mongodb://a:1,b:2/troupe?replicaSet=rs', 'rig_1')).toBe(
    'mongodb://a:1,b:2/rig_1?replicaSet=rs',
  );
  expect(withDatabase('mongodb://user:secret@h:1', 'rig_1')).toBe('mongodb://user:secret@h:1/rig_1');
  expect(withOptions('mongodb://a:1,b:2/t?replicaSet=rs&x=1', { x: '2', y: '3' })).toBe(
    'mongodb://a:1,b:2/t?replicaSet=rs&x=1&y=3',
  );
  expect(withOptions('mongodb://a:1', { y: '3' })).toBe('mongodb://a:1/?y=3');
  expect(withSchema('postgres://user@h:1/db?max=4', 'rig_1')).toBe(
    'postgres://user@h:1/db?max=4&schema=rig_1',
  );
});

test('only a server without discovery by the driver is used through the proxy', () => {
  expect(singleHost('mongodb://u:p@h:9/rig?directConnection=true')).toEqual({
    host: 'h',
    port: 9,
    written: 'h:9',
  });
  expect(singleHost('mongodb://h:9/rig')).toBeNull();
  expect(singleHost('mongodb://a:1,b:2/rig?directConnection=true')).toBeNull();
});

test('a run with too little work reports what is missing', () => {
  const done = { kills: 100, stops: 10, triggers: 3_000, queueLosses: 2, conversations: 300 };
  expect(missingGoals(60, done)).toEqual([]);
  expect(missingGoals(60, { ...done, kills: 99, conversations: 299 })).toEqual([
    'conversations 299 of 300',
    'kills 99 of 100',
  ]);
  expect(missingGoals(6, { kills: 10, stops: 1, triggers: 300, queueLosses: 0, conversations: 30 })).toEqual(
    [],
  );
  expect(conversationsFor(60)).toBe(300);
  expect(conversationsFor(7_200)).toBe(10_000);
});

test('too few recoveries, or one longer than a lease and a sweep, miss the goal', () => {
  const times = Array.from({ length: 25 }, () => 2_000);
  expect(missedRecovery(60, times)).toEqual([]);
  expect(missedRecovery(7_200, times)).toEqual([]);
  expect(missedRecovery(60, [...times.slice(2), 4_501])).toEqual([
    'recoveries 24 of 25',
    'recovery p99 4501 ms of at most 4500 ms',
  ]);
  expect(recoveriesFor(12)).toBe(5);
  expect(missedRecovery(1, [])).toEqual(['recoveries 0 of 1']);
});

test('unknown options are refused with the usage', () => {
  expect(readOptions(['--seconds', '5', '--seed', '9', '--json'])).toEqual({
    seconds: 5,
    seed: 9,
    json: true,
    keep: false,
    calm: false,
    strict: false,
    postgres: false,
    killDatabase: false,
    redis: 'single',
  });
  expect(readOptions(['--kill-database', '--redis', 'valkey'])).toMatchObject({
    killDatabase: true,
    redis: 'valkey',
  });
  expect(() => readOptions(['--seconds', 'soon'])).toThrow(/npm run rig/);
  expect(() => readOptions(['--redis', 'many'])).toThrow(/valkey, cluster, sentinel or none/);
  expect(() => readOptions(['--redis', 'none'])).toThrow(/needs --postgres/);
});
