import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

const SESSION = [
  { type: 'session', id: 's' },
  { type: 'message', id: 'a', message: { role: 'user', content: 'one' } },
  { type: 'message', message: { role: 'bashExecution', command: 'ls', output: 'a.ts', exitCode: 0 } },
  { type: 'message', id: 'b', message: { role: 'assistant', content: 'two' } },
  { type: 'compaction', summary: 'They counted.', firstKeptEntryId: 'b' },
]
  .map((line) => JSON.stringify(line))
  .join('\n');

test('import --dry-run counts what a file holds, and stores nothing', async () => {
  using place = workplace();
  const file = place.write('session.jsonl', SESSION);
  const { code, json } = await place.call(['import', file, '--dry-run', '--json']);
  expect([code, json]).toMatchObject([
    0,
    { dryRun: true, format: 'pi', conversation: 'session', events: 4, kinds: { message: 3, compaction: 1 } },
  ]);
  expect(existsSync(path.join(place.dir, '.troupe'))).toBe(false);
  const { out } = await place.call(['import', file, '--dry-run']);
  expect(out).toContain(
    '4 events in conversation session (not stored: dry run)\n  message 3, compaction 1\n',
  );
  const stored = await place.call(['import', file, '--json']);
  expect(stored.json['kinds']).toEqual(json['kinds']);
});

test('import --dry-run refuses what import refuses', async () => {
  using place = workplace();
  for (const args of [['--format', 'nonsense'], ['--agent', 'a b'], []]) {
    const run = await place.call([
      'import',
      place.write('x.txt', 'no transcript'),
      '--dry-run',
      '--json',
      ...args,
    ]);
    expect([run.code, run.json]).toMatchObject([1, { error: { code: 'import_invalid' } }]);
  }
});
