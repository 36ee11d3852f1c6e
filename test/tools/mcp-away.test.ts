import { expect, test } from 'vitest';
import { stuckLines } from '../../src/cli/commands/overview.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { openMcpTools } from '../../src/tools/mcp/open-mcp-tools.ts';
import { McpServers, type McpServerInput } from '../../src/tools/mcp/settings.ts';
import { ROOM } from '../support/company.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { type OddHttp, oddStdio, startOddHttp } from '../support/odd-mcp.ts';
import { untilHolds } from '../support/until-holds.ts';
import { tempDir } from '../store/temp-dir.ts';
import { caller, isAlive, type McpRoom, mcpRoom, stdioStage } from './mcp-stage.ts';
import { freePort } from '../services/server-process.ts';

const node = (script: string): McpServerInput => ({ command: process.execPath, args: ['-e', script] });

const answering = (status: number) =>
  startOddHttp((_, response) => void response.writeHead(status).end('<html>no'));

/** Servers that cannot be used, each with what the warning says. */
const STDIO: readonly [what: string, server: () => McpServerInput, why: RegExp][] = [
  ['a command that is not there', () => ({ command: 'no-such-command' }), /spawn no-such-command ENOENT/],
  ['a folder that is not there', () => ({ ...node(''), cwd: '/no/such/folder' }), /ENOENT/],
  [
    'a process that ends at once',
    () => node('console.error("first\\nno key"); process.exit(3)'),
    /it ended with code 3: no key\. Of the environment it gets only PATH, HOME/,
  ],
  ['a process that is killed', () => node('process.kill(process.pid, "SIGKILL")'), /ended by SIGKILL/],
  [
    'a process that does not answer',
    () => ({ ...node('process.stdin.resume()'), timeoutMs: 1_000 }),
    /did not answer within 1000 ms|timed out/,
  ],
  [
    'a process that writes no protocol and does not answer',
    () => ({ ...node('setInterval(() => console.log("working"), 200)'), timeoutMs: 1_000 }),
    /did not answer within 1000 ms|timed out/,
  ],
  [
    'a process that floods',
    () => node('setInterval(() => console.log("x\\n".repeat(5000)), 1)'),
    /messages|maximum size/,
  ],
  [
    'a version of the protocol that nobody speaks',
    () => {
      const initialize =
        '{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}';
      return oddStdio({ initialize }).server;
    },
    /version/i,
  ],
  ['a list of no tools', () => oddStdio({ 'tools/list': '{"tools":[]}' }).server, /it lists no tools/],
];

async function runsWithout(room: McpRoom, why: RegExp): Promise<void> {
  const [warning = '', ...more] = room.warnings;
  expect(more).toEqual([]);
  expect(warning).toMatch(/^mcpServers\.it: it cannot be used: /);
  expect(warning).toMatch(why);
  expect(warning).toContain('The troupe runs without its tools; it is tried again');
  expect(await room.call('bo', 'sum')).toEqual({ outcome: 'done', content: '2' });
  expect(await room.call('ana', 'look')).toEqual({
    outcome: 'failed',
    content:
      'there is no tool "it__look" here now, because the tool server it is away. Your tools: read_artifact.',
  });
}

const agents = [
  caller('ana', ['it/*', 'it/look', 'read_artifact'], { look: ['it__look'] }),
  caller('bo', ['files/*'], { sum: ['files__add', { a: 1, b: 1 }] }),
];

test.each(STDIO)('%s leaves the troupe running without its tools', async (_, server, why) => {
  const it = server();
  const stage = stdioStage();
  await using room = await mcpRoom({ agents, mcpServers: { it, files: stage.server() } });
  await runsWithout(room, why);
});

test.each<[what: string, serve: () => Promise<OddHttp | string>, why: RegExp]>([
  ['401', () => answering(401), /asks for a sign-in \(401\): give it "oauth"/],
  ['403', () => answering(403), /403/],
  ['404', () => answering(404), /404/],
  ['500', () => answering(500), /500/],
  ['the page of a proxy', () => answering(200), /content|JSON|html/i],
  ['a refused connection', async () => `http://127.0.0.1:${await freePort()}/mcp`, /ECONNREFUSED/],
  [
    'a name that is not known',
    () => Promise.resolve('http://no-such-host.invalid/mcp'),
    /no-such-host|ENOTFOUND|EAI_AGAIN/,
  ],
  [
    'a server without TLS',
    async () => {
      const web = await answering(200);
      return {
        ...web,
        url: web.url.replace('http:', 'https:'),
        [Symbol.asyncDispose]: web[Symbol.asyncDispose],
      };
    },
    /SSL|TLS|wrong version number|packet/i,
  ],
  [
    'a server that never answers',
    () => startOddHttp(() => undefined),
    /did not answer within 1000 ms|timed out/i,
  ],
])('over HTTP, %s leaves the troupe running without its tools', async (_, serve, why) => {
  const stage = stdioStage();
  const web = await serve();
  await using _web = typeof web === 'string' ? undefined : web;
  const isSilent = why.source.includes('within');
  const it = { url: typeof web === 'string' ? web : web.url, ...(isSilent && { timeoutMs: 1_000 }) };
  await using room = await mcpRoom({ agents, mcpServers: { it, files: stage.server() } });
  await runsWithout(room, why);
});

const NOW = 'mcpServers.web: it can be used now: agents have its tools from their next turn on';

test('the tools of a server come when it does, in a new baseline that says why', async () => {
  const port = await freePort();
  const ana = caller('ana', ['web/*'], { sum: ['web__add', { a: 2, b: 3 }] });
  const web = { url: `http://127.0.0.1:${port}/mcp` };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web } });
  expect(await room.call('ana', 'sum')).toMatchObject({ outcome: 'failed' });
  expect(JSON.stringify(await room.troupe.prompt(ROOM, 'ana'))).toContain(
    'unavailable: the tool server web is away, with its tools',
  );
  const stuck = await room.troupe.stuck();
  expect(stuck).toEqual({ stuck: [], total: 0, awayServers: [{ server: 'web', agents: ['ana'] }] });
  expect(stuckLines(stuck)[0]).toBe('the tool server web is away: @ana without its tools');
  await using _web = await startMcpHttpServer(port);
  await untilHolds(() => expect(room.warnings).toContain(NOW));
  expect(await room.troupe.stuck()).toEqual({ stuck: [], total: 0 });
  expect(room.troupe.agents[0]?.tools).toContain('web__add');
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  const { events } = await room.troupe.events(ROOM);
  const reasons = events.flatMap((event) => (event.kind === 'baseline' ? [event.body.reason] : []));
  expect(reasons).toEqual(['first turn', 'tools changed']);
  expect(room.warnings).toHaveLength(2);
});

test('calls of a server that comes later need the approval that its settings ask for', async () => {
  const port = await freePort();
  const ana = {
    ...caller('ana', ['web/*'], { sum: ['web__add', { a: 2, b: 3 }] }),
    needsApproval: ['web/*'],
  };
  const web = { url: `http://127.0.0.1:${port}/mcp` };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web } });
  await using server = await startMcpHttpServer(port);
  await untilHolds(() => expect(room.warnings).toContain(NOW));
  await room.post('ana', 'sum');
  await room.troupe.idle();
  expect(server.trace.filter((line) => line.startsWith('call'))).toEqual([]);
  const { events } = await room.troupe.events(ROOM);
  expect(events.map(({ kind }) => kind)).toContain('approval.requested');
});

test('what a server that comes later does not have is a warning', async () => {
  const port = await freePort();
  const ana = caller('ana', ['web/ad', 'web/add'], { sum: ['web__add', { a: 2, b: 3 }] });
  const web = { url: `http://127.0.0.1:${port}/mcp`, tools: ['ad', 'add'] };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web } });
  await using _web = await startMcpHttpServer(port);
  await untilHolds(() => expect(room.warnings).toContain(NOW));
  expect(room.warnings.join('\n')).toContain(
    'mcpServers.web.tools: it has no tool "ad"; did you mean "add"?',
  );
  expect(room.warnings.join('\n')).toContain('the MCP server "web" has no tool "ad"; did you mean "add"?');
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
});

test('a conversation whose server is gone at a restart goes on without its tools, and with them when it is back', async () => {
  const web = await startMcpHttpServer();
  const ana = caller('ana', ['web/*'], { sum: ['web__add', { a: 2, b: 3 }] });
  const input = { agents: [ana], mcpServers: { web: { url: web.url } } };
  const data = tempDir();
  {
    await using room = await mcpRoom(input, { data });
    expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  }
  await web[Symbol.asyncDispose]();
  await using room = await mcpRoom(input, { data });
  expect(await room.call('ana', 'sum')).toMatchObject({
    outcome: 'failed',
    content: expect.stringContaining('the tool server web is away') as string,
  });
  await using _again = await startMcpHttpServer(Number(new URL(web.url).port));
  await untilHolds(() => expect(room.warnings).toContain(NOW));
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
});

test('a server that hangs delays the start by its limit and no more, and is tried again after growing pauses', async () => {
  const clock = createFakeClock();
  const stage = stdioStage();
  const warnings: string[] = [];
  const servers = McpServers.parse({ it: stage.server('mute') });
  const opening = openMcpTools(servers, {
    env: {},
    clock,
    onWarning: (error, where) => warnings.push(`${where}: ${String(error)}`),
  });
  await untilHolds(() => expect(stage.pids()).toHaveLength(1));
  await clock.advance(59_999);
  expect(warnings).toEqual([]);
  await clock.advance(1);
  const mcp = await opening;
  expect(warnings).toEqual([expect.stringContaining('it did not answer within 60000 ms')]);
  expect([...mcp.away.keys()]).toEqual(['it']);
  await Promise.all([mcp.close(), clock.advance(5_000)]);
  await untilHolds(() => expect(stage.pids().some(isAlive)).toBe(false));
});

test('a server that keeps failing is tried again after 0.5, 1, 2, … and at most 30 s, with one warning', async () => {
  const clock = createFakeClock();
  const stage = stdioStage();
  const warnings: unknown[] = [];
  const mcp = await openMcpTools(McpServers.parse({ it: stage.server('broken') }), {
    env: { SECRET: 'hush' },
    clock,
    onWarning: (warning) => warnings.push(warning),
  });
  for (const [index, pause] of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
    await untilHolds(() => expect(clock.left()).toEqual([pause]));
    expect(stage.pids()).toHaveLength(index + 1);
    await clock.advance(pause);
    await untilHolds(() => expect(stage.pids()).toHaveLength(index + 2));
  }
  expect(warnings).toHaveLength(1);
  await mcp.close();
  expect(stage.pids().some(isAlive)).toBe(false);
});
