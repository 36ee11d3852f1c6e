import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { createJsonLogger } from '../../src/library/runtime/json-logger.ts';
import { guardLogger, warnThrough } from '../../src/library/runtime/operators.ts';
import { API_KEY, keepLines, startVendor } from './stage.ts';

test('a turn has a log line at its start and at its end, with the ids of the log, its time and its tokens', async () => {
  const { logger, lines } = keepLines();
  await using vendor = await startVendor(() => ({ text: 'ok' }), { logger });
  const events = await vendor.say('how is the sea?');
  const asked = events.find(({ kind }) => kind === 'message');
  const started = events.find(({ kind }) => kind === 'turn.started');
  const ids = { tenant: 'default', conversation: 'c1', agent: 'bo', turn: started?.turn, seq: asked?.seq };
  expect(lines).toEqual([
    {
      level: 'debug',
      code: 'turn_started',
      ...ids,
      process: expect.any(String),
      attempt: 1,
      waitMs: expect.any(Number),
    },
    {
      level: 'info',
      code: 'turn_done',
      ...ids,
      process: lines[0]?.process,
      attempt: 1,
      ms: expect.any(Number),
      waitMs: expect.any(Number),
      steps: 1,
      inputTokens: 12,
      outputTokens: 7,
      cacheReadTokens: 0,
    },
  ]);
});

test('a failed turn is a warning with the code, and so is its failed call; neither contains messages', async () => {
  const { logger, lines } = keepLines('info');
  const message = 'we did not like "how is the sea?"';
  await using vendor = await startVendor(() => ({ error: { code: 'provider_invalid_request', message } }), {
    logger,
  });
  const events = await vendor.say('how is the sea?');
  expect(events.at(-1)).toMatchObject({
    kind: 'turn.failed',
    body: { message: expect.stringContaining('sea') },
  });
  expect(lines.map(({ level, code, error }) => [level, code, error])).toEqual([
    ['info', 'model_call_failed', 'provider_invalid_request'],
    ['warn', 'turn_failed', 'provider_invalid_request'],
  ]);
  expect(JSON.stringify(lines)).not.toContain('sea');
});

test('warnings go through the logger, with the ids of their error', () => {
  const { logger, lines } = keepLines();
  const warn = warnThrough(logger);
  warn(new TroupeError('lease_lost', 'gone', { agent: 'bo', conversation: 'c1', head: 3 }), 'lease renewal');
  warn('tools have changed', 'mcp');
  warn(new Error('odd'), 'wake');
  expect(lines).toEqual([
    {
      level: 'warn',
      code: 'warning',
      agent: 'bo',
      conversation: 'c1',
      error: 'lease_lost',
      message: 'gone',
      where: 'lease renewal',
    },
    { level: 'warn', code: 'warning', message: 'tools have changed', where: 'mcp' },
    { level: 'warn', code: 'warning', error: 'internal', message: 'odd', where: 'wake' },
  ]);
});

test('a warning is a log line, unless the application handles it', async () => {
  // The window of its model is not known.
  const server = { provider: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' };
  const agents = [{ id: 'a', model: 'home-brew', ...server }] as never;
  const { logger, lines } = keepLines();
  const heard: unknown[] = [];
  await using quiet = await startVendor(
    () => ({}),
    { logger, onWarning: (error) => heard.push(error) },
    { agents },
  );
  expect([quiet.troupe.agents.length, lines.length, heard.length > 0]).toEqual([1, 0, true]);
  const { troupe } = await import('../../src/library/runtime/create-troupe.ts').then(
    async ({ createTroupe }) => ({
      troupe: await createTroupe({ agents }, { logger }),
    }),
  );
  await troupe.close();
  expect(lines[0]).toMatchObject({ level: 'warn', code: 'warning', where: 'models' });
});

test('log lines are JSON, from the chosen level up', () => {
  const written: string[] = [];
  const logger = createJsonLogger('warn', { write: (text) => void written.push(text) });
  expect([logger.isOn('error'), logger.isOn('warn'), logger.isOn('info')]).toEqual([true, true, false]);
  logger.write('info', 'turn_done', { turn: 't' });
  logger.write('warn', 'turn_failed', { tenant: 'default', turn: 't', seq: 7 }, { error: 'poison', ms: 3 });
  expect(written.map((text) => JSON.parse(text) as unknown)).toEqual([
    {
      level: 'warn',
      time: expect.stringMatching(/^20\d\d-\d\d-\d\dT.*Z$/),
      code: 'turn_failed',
      tenant: 'default',
      turn: 't',
      seq: 7,
      error: 'poison',
      ms: 3,
      msg: 'turn failed',
    },
  ]);
});

test('a logger that throws ends no turn', async () => {
  const logger = {
    isOn: () => true,
    write: () => {
      throw new Error('the disk is full');
    },
  };
  await using vendor = await startVendor(() => ({ text: 'ok' }), { logger });
  expect((await vendor.say('x')).at(-1)?.kind).toBe('turn.done');
});

test('a long message is shortened, and the process is named', () => {
  const { logger, lines } = keepLines();
  guardLogger(logger, (text) => text.replaceAll(API_KEY, '[key]'), 'p1').write(
    'warn',
    'warning',
    { turn: 't' },
    {
      message: API_KEY + 'x'.repeat(5_000),
    },
  );
  expect(lines[0]).toMatchObject({ turn: 't', process: 'p1' });
  expect(lines[0]?.message).toHaveLength(1_000);
  expect(lines[0]?.message).toMatch(/^\[key\]x/);
});
