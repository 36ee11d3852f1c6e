import { expect, test } from 'vitest';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { ROOM, UMA } from '../support/company.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { caller, isAlive, mcpRoom, stdioStage } from './mcp-stage.ts';

test('an agent calls a tool of a process, which ends with the troupe', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/add'], { sum: ['files__add', { a: 2, b: 3 }] });
  {
    await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
    expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
    expect(stage.pids().map(isAlive)).toEqual([true]);
  }
  expect(stage.pids().map(isAlive)).toEqual([false]);
  expect(stage.trace()).toEqual(['start', 'call add {"a":2,"b":3}']);
});

test('an agent calls a tool over HTTP with the headers from variables, and the session is ended', async () => {
  await using web = await startMcpHttpServer();
  const ana = caller('ana', ['web/*'], { sum: ['web__add', { a: 2, b: 3 }] });
  const mcpServers = { web: { url: web.url, headersEnv: { Authorization: 'WEB_AUTH' } } };
  {
    await using room = await mcpRoom({ agents: [ana], mcpServers }, { env: { WEB_AUTH: 'Bearer hush' } });
    expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  }
  expect(web.trace).toEqual(['session begins', 'call add {"a":2,"b":3}', 'session ends']);
  expect(new Set(web.headers.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer hush']));
});

test('a model gets the schemas as the server wrote them, under names that vendors accept, page by page', async () => {
  const stage = stdioStage();
  await using vendor = await startFakeOpenAi(() => ({ text: 'hi' }));
  const ana = {
    id: 'ana',
    provider: 'openai-compatible' as const,
    model: 'm',
    baseUrl: vendor.url,
    tools: ['files/*'],
  };
  await using troupe = await createTroupe(
    { agents: [ana], mcpServers: { files: stage.server() } },
    { env: {}, onWarning: () => undefined },
  );
  await troupe.send(ROOM, { author: UMA, to: ['ana'], content: 'hello' });
  await troupe.idle();
  const { body } = await vendor.arrived();
  const { tools } = body as { tools: { function: { name: string } }[] };
  expect(tools.map(({ function: { name } }) => name)).toEqual([
    'files__add',
    'files__big',
    'files__change',
    'files__die',
    'files__endless',
    'files__environment',
    'files__facts',
    'files__files_read_all',
    'files__media',
    'files__process',
    'files__refuse',
    'files__steps',
    'files__wait',
    'read_artifact',
  ]);
  expect(tools[0]?.function).toMatchObject({
    description: 'Adds two numbers.',
    parameters: {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
    },
  });
});

test('a tool with an odd name is called by its original name', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/files.read/all'], {
    read: ['files__files_read_all', { path: 'a', deep: [1] }],
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  expect(await room.call('ana', 'read')).toEqual({ outcome: 'done', content: 'files.read/all answers' });
  expect(stage.trace()).toContain('call files.read/all {"path":"a","deep":[1]}');
});

test('a tool that is not granted is refused, and the call never reaches the server', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/facts'], { sum: ['files__add', { a: 2, b: 3 }], raw: ['facts'] });
  const bo = caller('bo', ['files/*'], {});
  const mcpServers = { files: { ...stage.server(), tools: ['facts', 'process'] } };
  await using room = await mcpRoom({ agents: [ana, bo], mcpServers });
  for (const word of ['sum', 'raw']) {
    expect(await room.call('ana', word)).toMatchObject({
      outcome: 'failed',
      content: expect.stringContaining('Your tools: files__facts, read_artifact') as string,
    });
  }
  expect(room.troupe.agents[1]?.tools).toEqual(['files__facts', 'files__process', 'read_artifact']);
  expect(stage.trace()).toEqual(['start']);
});

test('two agents share one process', async () => {
  const stage = stdioStage();
  const agents = ['ana', 'bo'].map((id) => caller(id, ['files/*'], { who: ['files__process'] }));
  await using room = await mcpRoom({ agents, mcpServers: { files: stage.server() } });
  const first = await room.call('ana', 'who');
  expect(await room.call('bo', 'who')).toEqual(first);
  expect(stage.pids()).toEqual([Number(first.content)]);
});

test('a large output is shown as a preview, and the agent reads the rest', async () => {
  const stage = stdioStage();
  const id = '@artifact/room:ana:1.0.0';
  const ana = caller('ana', ['files/big'], {
    print: ['files__big'],
    rest: ['read_artifact', { id, offset: 3_999 }],
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  const { content, artifact } = await room.call('ana', 'print');
  expect(Buffer.byteLength(content)).toBeLessThanOrEqual(8_192);
  expect(content).toContain('of 96000 bytes');
  expect(content).toContain(id);
  expect(artifact).toBe('room:ana:1.0.0');
  expect((await room.call('ana', 'rest')).content).toBe(
    'a line of a long output\n[lines 3999 to 3999 of 4000]',
  );
});

test('a server may have its own preview size', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/big'], { print: ['files__big'] });
  const mcpServers = { files: { ...stage.server(), previewBytes: 1_000 } };
  await using room = await mcpRoom({ agents: [ana], mcpServers });
  const { content, artifact } = await room.call('ana', 'print');
  expect(Buffer.byteLength(content)).toBeLessThanOrEqual(1_000);
  expect(artifact).toBe('room:ana:1.0.0');
});

test('images and files are named, texts are shown, and structured content is shown as JSON', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { look: ['files__media'], facts: ['files__facts'] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  expect((await room.call('ana', 'look')).content.split('\n')).toEqual([
    'two pictures',
    '[image image/png, 1000 bytes: not shown]',
    '[resource file:///a.txt text/plain, 12 bytes: not shown]',
    '[resource file:///b.txt]',
    'what b holds',
    '[resource file:///c.bin, 3 bytes: not shown]',
  ]);
  expect((await room.call('ana', 'facts')).content).toBe('{"warm":true,"degrees":21}');
});

test('a process sees only PATH, HOME and the named variables', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/environment'], { env: ['files__environment'] });
  process.env['CANARY'] = 'of the process';
  const env = { SECRET: 'hush-hush', CANARY: 'not named' };
  await using room = await mcpRoom(
    { agents: [ana], mcpServers: { files: { ...stage.server(), env: ['SECRET'] } } },
    { env },
  );
  delete process.env['CANARY'];
  const { content } = await room.call('ana', 'env');
  const { PATH, HOME } = process.env;
  expect(JSON.parse(content)).toEqual({ PATH, HOME, SECRET: 'hush-hush' });
});

test('a changed list of tools is reported to the operator once per change', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/change'], { change: ['files__change'] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  await room.call('ana', 'change');
  expect(room.warnings.filter((line) => line.startsWith('mcpServers'))).toEqual([
    'mcpServers.files: its tools have changed; agents get them after the next start',
  ]);
});

test('a process that takes no turns opens no server and needs none of their variables', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], {});
  await using room = await mcpRoom(
    { agents: [ana], mcpServers: { files: { ...stage.server(), env: ['SECRET'] } } },
    { work: false },
  );
  expect(room.troupe.agents).toHaveLength(1);
  expect(stage.trace()).toEqual([]);
});

test('a server without granted tools is not started, and a warning says so', async () => {
  const stage = stdioStage();
  const ana = caller('ana', [], {});
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  expect(room.warnings).toContain('mcpServers.files: no agent is granted its tools, so it is not started');
  expect(stage.trace()).toEqual([]);
});

test('a tool that only runs as a task is not offered, and one warning says so', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*', 'files/long_research'], {
    research: ['files__long_research'],
    sum: ['files__add', { a: 1, b: 2 }],
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('tasks') } });
  expect(await room.call('ana', 'research')).toMatchObject({ outcome: 'failed' });
  expect(stage.trace().join()).not.toContain('long_research');
  expect(await room.call('ana', 'sum')).toMatchObject({ outcome: 'done', content: '3' });
  const told = room.warnings.filter((warning) => warning.includes('long_research'));
  expect(told).toEqual([
    'mcpServers.files: not offered to agents, because they run as MCP tasks only: "long_research"',
  ]);
});
