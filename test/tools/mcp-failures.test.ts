import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { openMcpTools } from '../../src/tools/mcp/open-mcp-tools.ts';
import { McpServers } from '../../src/tools/mcp/settings.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { ROOM, UMA } from '../support/company.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { caller, isAlive, mcpRoom, stdioStage } from './mcp-stage.ts';
import { untilHolds } from '../support/until-holds.ts';

const failed = (words: string) => ({ outcome: 'failed', content: expect.stringContaining(words) as string });

const CONTEXT = createToolContext();

test('a refusal of a server is a failed result that the model can act on', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/add'], {
    wrong: ['files__add', { a: 'one' }],
    broken: ['files__add', '{"a":'],
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  expect(await room.call('ana', 'wrong')).toEqual(failed('files__add failed: a and b must be numbers'));
  expect(await room.call('ana', 'broken')).toEqual(failed('not valid JSON'));
  expect(stage.trace()).toEqual(['start', 'call add {"a":"one"}']);
});

test.each(['stdio', 'http'])(
  'over %s, a call beyond its timeout fails, and the server is told to stop',
  async (way) => {
    const clock = createFakeClock();
    const stage = stdioStage();
    await using web = await startMcpHttpServer();
    const trace = () => (way === 'stdio' ? stage.trace() : web.trace);
    const it = { ...(way === 'stdio' ? stage.server() : { url: web.url }), tools: ['wait'] };
    const mcp = await openMcpTools(McpServers.parse({ it }), {
      env: {},
      clock,
      onWarning: () => undefined,
    });
    const call = { id: 'c1', name: 'it__wait', args: '{}' };
    const run = runTool(mcp.tools[0] as Tool, call, CONTEXT, { clock });
    await untilHolds(() => expect(trace()).toContain('call wait {}'));
    await clock.advance(60_000);
    expect(await run).toEqual({
      outcome: 'failed',
      text: expect.stringContaining('longer than 60000 ms') as string,
    });
    await untilHolds(() => expect(trace()).toContain('cancelled'));
    await mcp.close();
  },
);

test('an aborted turn cancels its call', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { wait: ['files__wait'], sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  await room.post('ana', 'wait');
  await untilHolds(() => expect(stage.trace()).toContain('call wait {}'));
  await room.troupe.command({ command: 'abort', turn: `${ROOM}:ana:1` as never }, UMA);
  await untilHolds(() => expect(stage.trace()).toContain('cancelled'));
  await room.troupe.idle();
  expect((await room.troupe.events(ROOM)).events.at(-1)?.kind).toBe('turn.aborted');
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
});

test('a process that dies during a call is reported with its last line, without secrets, and restarted for the next', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { die: ['files__die'], sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom(
    { agents: [ana], mcpServers: { files: { ...stage.server(), env: ['SECRET'] } } },
    { env: { SECRET: 'hush-hush' } },
  );
  expect(await room.call('ana', 'die')).toEqual(
    failed('(it ended with code 3: dying with [SECRET]); whether it had an effect is not known'),
  );
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
  expect(stage.pids().map(isAlive)).toEqual([false, true]);
  expect(stage.trace().filter((line) => line.startsWith('call'))).toEqual([
    'call die {}',
    'call add {"a":1,"b":1}',
  ]);
});

test('a message of more than 10 MiB ends its process, and the error says so', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { much: ['files__endless'], sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  expect(await room.call('ana', 'much')).toEqual(failed('maximum size of 10485760 bytes'));
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
});

test('a process that was killed between two calls is restarted', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  const [pid = 0] = stage.pids();
  process.kill(pid, 'SIGKILL');
  const warning =
    'mcpServers.files: the connection was lost and is reopened on demand: it was ended by SIGKILL';
  await untilHolds(() => expect(room.warnings).toContain(warning));
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
  expect(stage.pids()).toHaveLength(2);
});

test('a process that keeps dying is restarted after growing pauses until it answers', async () => {
  const clock = createFakeClock();
  const stage = stdioStage();
  const mcp = await openMcpTools(McpServers.parse({ it: stage.server() }), {
    env: {},
    clock,
    onWarning: () => undefined,
  });
  const run = (name: string, args = '{}') => {
    const tool = mcp.tools.find((each) => each.name === name) as Tool;
    return runTool(tool, { id: 'c1', name, args }, CONTEXT, { clock });
  };
  async function runAfter(pauseMs: number, name: string, args?: string) {
    const result = run(name, args);
    // The timeout of the call, and the pause.
    await untilHolds(() => expect(clock.sleeping()).toBe(2));
    await clock.advance(pauseMs - 1);
    expect(clock.sleeping()).toBe(2);
    await clock.advance(1);
    expect(clock.sleeping()).toBe(1);
    return result;
  }
  await run('it__die');
  await run('it__die');
  await runAfter(500, 'it__die');
  expect(await runAfter(1_000, 'it__add', '{"a":1,"b":1}')).toEqual({ outcome: 'done', text: '2' });
  await run('it__die');
  expect(await run('it__add', '{"a":1,"b":1}')).toEqual({ outcome: 'done', text: '2' });
  await mcp.close();
});

test('a call to an HTTP server that forgot the session is sent once more in a new session', async () => {
  await using web = await startMcpHttpServer();
  const ana = caller('ana', ['web/*'], { sum: ['web__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web: { url: web.url } } });
  web.forget();
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
  expect(web.trace.filter((line) => line.startsWith('call'))).toHaveLength(1);
});

test('a call fails at once when its HTTP server goes away, and the server is used again when it is back', async () => {
  const web = await startMcpHttpServer();
  const ana = caller('ana', ['web/*'], { wait: ['web__wait'], sum: ['web__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web: { url: web.url } } });
  await room.post('ana', 'wait');
  await untilHolds(() => expect(web.trace).toContain('call wait {}'));
  await web[Symbol.asyncDispose]();
  await room.troupe.idle();
  const { events } = await room.troupe.events(ROOM);
  expect(events.find(({ kind }) => kind === 'tool.result')?.body).toMatchObject(
    failed('ended during the call'),
  );
  expect(await room.call('ana', 'sum')).toEqual(failed('cannot be reached'));
  await using _again = await startMcpHttpServer(Number(new URL(web.url).port));
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
});

test('a process that ignores the end of its input and SIGTERM is killed', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], {});
  const room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('stubborn') } });
  await room.troupe.close();
  expect(stage.trace()).toEqual(['start', 'SIGTERM']);
  expect(stage.pids().map(isAlive)).toEqual([false]);
});

test('a child process of a server ends with it', async () => {
  const stage = stdioStage();
  const { command, args = [] } = stage.server();
  // A shell that waits for the server, as a package runner does.
  const server = { command: 'sh', args: ['-c', '"$0" "$@"; exit', command, ...args.slice(0, 2), 'stubborn'] };
  const ana = caller('ana', ['files/*'], {});
  const room = await mcpRoom({ agents: [ana], mcpServers: { files: server } });
  expect(stage.pids().map(isAlive)).toEqual([true]);
  await room.troupe.close();
  await untilHolds(() => expect(stage.pids().map(isAlive)).toEqual([false]));
});
