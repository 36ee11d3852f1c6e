/** An MCP server over stdio, in a separate process. Arguments: the trace file, and the kind of misbehaviour. */
import { appendFileSync } from 'node:fs';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { createMcpServer, TOOLS } from './mcp-tools.ts';

const [file = '', manner = ''] = process.argv.slice(2);

function trace(line: string): void {
  appendFileSync(file, `${line}\n`);
}

function die(): void {
  console.error(`first words\ndying with ${process.env['SECRET']}`);
  process.exit(3);
}

trace(`start ${process.pid}`);
if (manner === 'broken') die();
if (manner === 'stubborn') process.on('SIGTERM', () => trace('SIGTERM'));
if (manner === 'stubborn' || manner === 'mute') setInterval(() => undefined, 60_000);
// Some servers log to stdout, which breaks the protocol.
console.log('listening on stdio');
const tools =
  manner === 'colliding'
    ? [{ name: 'files_read_all', inputSchema: { type: 'object' as const } }, ...TOOLS]
    : manner === 'tasks'
      ? [
          {
            name: 'long_research',
            inputSchema: { type: 'object' as const },
            execution: { taskSupport: 'required' as const },
          },
          ...TOOLS.map((tool) => ({ ...tool, execution: { taskSupport: 'optional' as const } })),
        ]
      : TOOLS;
if (manner !== 'mute')
  await createMcpServer({ trace, die, tools, hasLibrary: manner === 'library' }).connect(
    new StdioServerTransport(),
  );
