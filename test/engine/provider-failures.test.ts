import { expect, test } from 'vitest';
import { MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { breaks, bytes, inOrder, says, shown, times } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';

async function kindsOf(stage: Stage): Promise<string[]> {
  return (await stage.events('c')).filter(({ turn }) => turn !== undefined).map(({ kind }) => kind);
}

test('a call that breaks off is told as an error and repeated with the identical request', async () => {
  const model = inOrder(breaks('provider_truncated', 'half'), breaks('provider_rate_limited'), says('whole'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(await kindsOf(stage)).toEqual(['turn.started', 'error', 'error', 'message', 'turn.done']);
  expect(model.requests.map(({ trace }) => trace.call)).toEqual([1, 2, 3]);
  expect(new Set(model.requests.map(bytes)).size).toBe(1);
  const errors = (await stage.events('c')).filter(({ kind }) => kind === 'error');
  expect(errors).toMatchObject([
    { body: { code: 'provider_truncated', partial: 'half', step: 1 } },
    { body: { code: 'provider_rate_limited', partial: '', step: 1 } },
  ]);
  expect(await stage.check('c')).toEqual([]);
});

test('a failure that no repeating can mend ends the turn at once', async () => {
  const model = inOrder(breaks('provider_auth'), says('well'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(1);
  expect(await kindsOf(stage)).toEqual(['turn.started', 'error', 'turn.failed']);
  expect((await stage.events('c')).at(-1)).toMatchObject({ body: { code: 'provider_auth', covers: [1] } });
  expect(await stage.check('c')).toEqual([]);
});

test('when all tries are used up the turn fails with what was said, which the next prompt shows once', async () => {
  const model = inOrder(
    ...Array.from({ length: MAX_TRIES }, () => breaks('provider_overloaded', 'so far')),
    says('now'),
  );
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(MAX_TRIES);
  const failed = (await stage.events('c')).at(-1);
  expect(failed).toMatchObject({
    kind: 'turn.failed',
    body: { code: 'provider_overloaded', partial: 'so far' },
  });
  await stage.say('c', 'continue', ['bo']);
  await stage.quiet();
  const prompt = shown(model.requests.at(-1));
  expect(times(prompt, 'so far')).toBe(1);
  expect(times(prompt, '[this turn failed: provider_overloaded]')).toBe(1);
  expect(await stage.check('c')).toEqual([]);
});

test('a provider that throws against its port fails the turn, not the process, and the next message works', async () => {
  const model = inOrder(says('fine'));
  let threw = false;
  const broken: Provider = {
    ...model,
    stream(request, options) {
      if (threw) return model.stream(request, options);
      threw = true;
      throw new RangeError('a bug of the adapter');
    },
  };
  const stage = await openStage({ agents: [{ id: 'bo', model: broken }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'turn.failed', body: { code: 'internal' } });
  expect(stage.warnings).not.toEqual([]);
  await stage.say('c', 'again', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a watcher that throws disturbs neither the stream nor the log', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('a', 'b')) }] });
  stage.troupe.watch(() => {
    throw new Error('a broken watcher');
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(stage.warnings.length).toBeGreaterThan(0);
  expect(await stage.check('c')).toEqual([]);
});

test('a prompt that does not fit the window fails the turn with the largest layers named', async () => {
  const model = inOrder(says('never'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'x'.repeat(600_000), ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(0);
  const failed = (await stage.events('c')).at(-1);
  expect(failed).toMatchObject({ kind: 'turn.failed', body: { code: 'context_overflow' } });
  expect(failed?.kind === 'turn.failed' && failed.body.message).toContain('trigger');
});
