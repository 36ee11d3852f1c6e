import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { openMcpTools } from '../../src/tools/mcp/open-mcp-tools.ts';
import { McpServers } from '../../src/tools/mcp/settings.ts';
import { json, LOOK, oddStdio, startOddHttp } from '../support/odd-mcp.ts';
import { caller, mcpRoom } from './mcp-stage.ts';

const SCHEMA = '{"type":"object"}';
const ana = caller('ana', ['it/*'], { look: ['it__look', { city: 'Oslo' }] });
const UNKNOWN = 'whether it had an effect is not known';

/** Odd items of a list of tools. `null`: the tool is usable; else what the warning says. */
test.each<[what: string, tool: string, warning: string | null]>([
  [
    'hints that are null',
    `{"name":"odd","inputSchema":${SCHEMA},"annotations":{"title":null,"readOnlyHint":null}}`,
    null,
  ],
  [
    'annotations as an empty list, as PHP writes it',
    `{"name":"odd","inputSchema":${SCHEMA},"annotations":[]}`,
    null,
  ],
  [
    'a title and a description that are null',
    `{"name":"odd","title":null,"description":null,"inputSchema":${SCHEMA}}`,
    null,
  ],
  ['an output schema that is null', `{"name":"odd","inputSchema":${SCHEMA},"outputSchema":null}`, null],
  [
    'an output schema of a list',
    `{"name":"odd","inputSchema":${SCHEMA},"outputSchema":{"type":["null","array"]}}`,
    null,
  ],
  [
    '_meta, icons and execution that are null',
    `{"name":"odd","inputSchema":${SCHEMA},"_meta":null,"icons":null,"execution":null}`,
    null,
  ],
  ['no schema', '{"name":"odd"}', null],
  ['a schema that is null', '{"name":"odd","inputSchema":null}', null],
  ['an empty schema', '{"name":"odd","inputSchema":{}}', null],
  ['a schema that is an empty list', '{"name":"odd","inputSchema":[]}', null],
  [
    'a schema without a type',
    '{"name":"odd","inputSchema":{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}}',
    null,
  ],
  ['a schema of an object or null', '{"name":"odd","inputSchema":{"type":["object","null"]}}', null],
  [
    'properties and required that are null',
    '{"name":"odd","inputSchema":{"type":"object","properties":null,"required":null}}',
    null,
  ],
  ['properties as an empty list', '{"name":"odd","inputSchema":{"type":"object","properties":[]}}', null],
  ['a field that nobody knows', `{"name":"odd","inputSchema":${SCHEMA},"version":3}`, null],
  ['null', 'null', '"": it is no object'],
  ['a text', '"odd"', '"": it is no object'],
  ['no name', `{"inputSchema":${SCHEMA}}`, '"": it has no name'],
  ['a schema that is a text', '{"name":"odd","inputSchema":"object"}', '"odd": its schema is no object'],
  [
    'a schema of a text',
    '{"name":"odd","inputSchema":{"type":"string"}}',
    '"odd": its arguments are of the type "string"',
  ],
  ['the same name twice', LOOK, '"look" is listed twice'],
])('a tool with %s leaves the others usable', async (_, tool, warning) => {
  const stage = oddStdio({
    'tools/list': `{"tools":[${LOOK},${tool}],"nextCursor":null}`,
    'tools/call': '{"content":[{"type":"text","text":"sun"}]}',
  });
  const bo = caller('bo', ['it/odd'], { odd: ['it__odd'] });
  await using room = await mcpRoom({
    agents: [ana, bo].slice(0, warning === null ? 2 : 1),
    mcpServers: { it: stage.server },
  });
  expect(room.warnings).toEqual(warning === null ? [] : [expect.stringContaining(warning)]);
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
  if (warning === null) expect(await room.call('bo', 'odd')).toEqual({ outcome: 'done', content: 'sun' });
});

test('a schema is shown without its keywords that are null, and with values that are', async () => {
  const schema =
    '{"$schema":"x","type":"object","properties":{"a":{"type":"string","description":null,"default":null,"enum":["x",null]},"b":null},"additionalProperties":null}';
  const stage = oddStdio({ 'tools/list': `{"tools":[{"name":"look","inputSchema":${schema}}]}` });
  const clock = createFakeClock();
  const mcp = await openMcpTools(McpServers.parse({ it: stage.server }), {
    env: {},
    clock,
    onWarning: () => undefined,
  });
  expect(mcp.tools[0]?.parameters).toEqual({
    type: 'object',
    properties: { a: { type: 'string', default: null, enum: ['x', null] }, b: {} },
  });
  await mcp.close();
});

/** What servers answer `tools/list` with beside a list. */
test.each<[what: string, list: string, warning: RegExp | null, offered: boolean]>([
  ['an empty cursor', `{"tools":[${LOOK}],"nextCursor":""}`, null, true],
  ['a cursor that is always the same', `{"tools":[${LOOK}],"nextCursor":"1"}`, /repeats a cursor/, true],
  ['null for the list', '{"tools":null}', /is no list/, false],
  ['a list of nothing', '{}', /is no list/, false],
  ['null for the result', 'null', /is no list/, false],
  ['an error', '{"jsonrpc":"2.0","id":$id,"error":{"code":"-1","message":null}}\n', /cannot be read/, false],
  ['half a message', '{"jsonrpc":"2.0","id":$id,"result":{"tools":[\n', /no JSON/, false],
])('%s in place of a list of tools keeps no troupe from starting', async (_, list, warning, offered) => {
  const stage = oddStdio({ 'tools/list': list, 'tools/call': '{"content":[{"type":"text","text":"sun"}]}' });
  const good = oddStdio({ 'tools/call': '{"content":[{"type":"text","text":"good"}]}' });
  const bo = caller('bo', ['good/*'], { look: ['good__look'] });
  await using room = await mcpRoom({
    agents: [ana, bo],
    mcpServers: { it: stage.server, good: good.server },
  });
  if (warning === null) expect(room.warnings).toEqual([]);
  else expect(room.warnings.join('\n')).toMatch(warning);
  expect(await room.call('bo', 'look')).toEqual({ outcome: 'done', content: 'good' });
  if (offered) expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});

const text = '{"type":"text","text":"sun"}';

/** A tool that ran is done, however odd its result. */
test.each<[what: string, result: string, content: string]>([
  [
    'null for isError, _meta and structuredContent',
    `{"content":[${text}],"isError":null,"_meta":null,"structuredContent":null}`,
    'sun',
  ],
  ['a text that is null beside one', `{"content":[{"type":"text","text":null},${text}]}`, 'sun'],
  ['a null among the parts', `{"content":[null,${text}]}`, 'sun'],
  [
    'annotations that are null',
    '{"content":[{"type":"text","text":"sun","annotations":null,"_meta":null}]}',
    'sun',
  ],
  ['content that is null', '{"content":null}', '[the tool returned nothing]'],
  ['null', 'null', '[the tool returned nothing]'],
  ['an empty object', '{}', '[the tool returned nothing]'],
  ['content that is a text', '{"content":"sun"}', 'sun'],
  ['content that is one part', `{"content":${text}}`, 'sun'],
  ['a list of texts', '{"content":["sun","rain"]}', 'sun\nrain'],
  ['a part without a type', '{"content":[{"text":"sun"}]}', 'sun'],
  ['a text that is a number', '{"content":[{"type":"text","text":20}]}', '20'],
  ['a text that is an object', '{"content":[{"type":"text","text":{"t":20}}]}', '{"t":20}'],
  [
    'a part of another type',
    `{"content":[{"type":"video","url":"x"},${text}]}`,
    '[a part of the type "video"] {"type":"video","url":"x"}\nsun',
  ],
  ['a picture without a type', '{"content":[{"type":"image","data":"AAAA"}]}', '[image, 3 bytes: not shown]'],
  [
    'a picture without data',
    `{"content":[{"type":"image","mimeType":"image/png"},${text}]}`,
    '[image image/png: not shown]\nsun',
  ],
  [
    'a resource that is null',
    `{"content":[{"type":"resource","resource":null},${text}]}`,
    '[resource: not shown, because it cannot be read]\nsun',
  ],
  [
    'a resource without a URI',
    '{"content":[{"type":"resource","resource":{"text":"sun"}}]}',
    '[resource]\nsun',
  ],
  [
    'a link without a name',
    '{"content":[{"type":"resource_link","uri":"file:///x","size":null}]}',
    '[resource file:///x: not shown]',
  ],
  ['structured content that is a list', '{"content":[],"structuredContent":[1,2]}', '[1,2]'],
  ['structured content that is a text', '{"structuredContent":"sun"}', '"sun"'],
  ['fields of its own', '{"temperature":20}', '{"temperature":20}'],
  ['the result of the first revision', '{"toolResult":{"t":20}}', '{"toolResult":{"t":20}}'],
  ['a bare text', '"sun"', 'sun'],
  ['a bare list', '[{"t":20}]', '[{"t":20}]'],
  [
    'an error that is null',
    `{"jsonrpc":"2.0","id":$id,"result":{"content":[${text}]},"error":null}\n`,
    'sun',
  ],
  ['no version', `{"id":$id,"result":{"content":[${text}]}}\n`, 'sun'],
  [
    'fields in the envelope',
    `{"jsonrpc":"2.0","id":$id,"result":{"content":[${text}]},"took":3,"method":null}\n`,
    'sun',
  ],
  ['an id that is a text', `{"jsonrpc":"2.0","id":"$id","result":{"content":[${text}]}}\n`, 'sun'],
  ['a list of messages', `[{"jsonrpc":"2.0","id":$id,"result":{"content":[${text}]}}]\n`, 'sun'],
  ['a byte order mark', `\uFEFF{"jsonrpc":"2.0","id":$id,"result":{"content":[${text}]}}\n`, 'sun'],
  ['no result at all', '{"jsonrpc":"2.0","id":$id}\n', '[the tool returned nothing]'],
])('a call whose result has %s is done', async (_, result, content) => {
  const stage = oddStdio({ 'tools/call': result });
  await using web = await startOddHttp((request, response) => {
    if (request.method !== 'tools/call') return false;
    const whole = result.endsWith('\n') ? result : `{"jsonrpc":"2.0","id":$id,"result":${result}}`;
    json(response, whole.replaceAll('$id', request.id));
    return true;
  });
  const bo = caller('bo', ['web/*'], { look: ['web__look'] });
  await using room = await mcpRoom({
    agents: [ana, bo],
    mcpServers: { it: stage.server, web: { url: web.url } },
  });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content });
  expect(await room.call('bo', 'look')).toEqual({ outcome: 'done', content });
  expect(room.warnings).toEqual([]);
});

test.each([
  ['a failure', '{"isError":true,"content":"no such city"}', 'it__look failed: no such city'],
  ['a failure that says so in a text', `{"isError":"true","content":[${text}]}`, 'it__look failed: sun'],
  [
    'an error without a code',
    '{"jsonrpc":"2.0","id":$id,"error":{"message":"no such city"}}\n',
    'it__look failed: no such city',
  ],
  [
    'an error that is a text',
    '{"jsonrpc":"2.0","id":$id,"error":"no such city"}\n',
    'it__look failed: no such city',
  ],
  [
    'an error beside a result that is null',
    '{"jsonrpc":"2.0","id":$id,"result":null,"error":{"code":1,"message":"no such city"}}\n',
    'it__look failed: no such city',
  ],
  [
    'an error without an id',
    '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no such city"}}\n',
    'it__look failed: no such city',
  ],
  ['another id', '{"jsonrpc":"2.0","id":"other","result":{}}\n', `another id; ${UNKNOWN}`],
  ['half a message', '{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"te\n', UNKNOWN],
  [
    'a number that is none',
    '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"structuredContent":{"t":NaN}}}\n',
    UNKNOWN,
  ],
])('a call that is answered with %s ends at once', async (_, result, words) => {
  const stage = oddStdio({ 'tools/call': result });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: stage.server } });
  const { outcome, content } = await room.call('ana', 'look');
  expect(outcome).toBe('failed');
  expect(content).toContain(words);
});

test.each([
  ['lines of a log', 'starting up\n{"level":"info","msg":"ready"}\n\n[1,2]\n'],
  ['a line without its end', 'starting up: '],
  ['lines with carriage returns', 'starting up\r\n'],
])('a server that prints %s to its output works', async (_, start) => {
  const stage = oddStdio({ start, 'tools/call': `{"content":[${text}]}` });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: stage.server } });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});

test.each([
  ['no capabilities and no name', '{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":null}'],
  [
    'lists for objects',
    '{"protocolVersion":"2025-06-18","capabilities":{"tools":[],"logging":[]},"serverInfo":[]}',
  ],
  [
    'null everywhere',
    '{"protocolVersion":null,"capabilities":{"tools":{"listChanged":null},"prompts":null},"serverInfo":{"name":"x","version":null},"instructions":null}',
  ],
  [
    'an answer without an id',
    '{"jsonrpc":"2.0","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n',
  ],
])('a server that begins with %s works', async (_, initialize) => {
  const stage = oddStdio({ initialize, 'tools/call': `{"content":[${text}]}` });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: stage.server } });
  expect(room.warnings).toEqual([]);
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});
