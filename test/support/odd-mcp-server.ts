/**
 * An MCP server over stdio, in a separate process, that answers each method with the text it is given: a result, or with a line
 * feed at its end all that it writes. `$id` stands for the id of the request. It appends each line that it gets to a file.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file = '', given = '{}'] = process.argv.slice(2);
const serverInfo = { name: 'odd', version: '1' };
const answers: Record<string, string> = {
  initialize: JSON.stringify({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo }),
  ping: '{}',
  ...(JSON.parse(given) as Record<string, string>),
};
process.stdout.write(answers['start'] ?? '');
createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync(file, `${line}\n`);
  const { id, method } = JSON.parse(line) as { id?: unknown; method?: string };
  if (id === undefined || method === undefined) return;
  const answer = answers[method];
  const unknown = '{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}\n';
  const text = answer ?? unknown;
  const whole = text === '' || text.endsWith('\n') ? text : `{"jsonrpc":"2.0","id":$id,"result":${text}}\n`;
  process.stdout.write(whole.replaceAll('$id', JSON.stringify(id)));
});
