import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/client';
import * as z from 'zod';
import { blockText } from './block-text.ts';
import { defineTool, type Tool, type ToolText } from '../tool.ts';
import { createAsking } from './input-required.ts';
import type { Connection } from './connection.ts';
import type { McpServer } from './settings.ts';
import { toolName } from './tool-name.ts';

/** A tool of a server, under the name that models call it by. */
export interface McpTool extends Tool {
  readonly origin: { server: string; tool: string };
}

export interface Origin {
  server: string;
  settings: McpServer;
  connection: Connection;
  redact: (text: string) => string;
}

export function wrapTool(listed: ListedTool, { server, settings, connection, redact }: Origin): McpTool {
  const { annotations, inputSchema } = listed;
  const { $schema: _, ...parameters } = inputSchema;
  const askAndCall = createAsking(`${server}/${listed.name}`);
  const tool = defineTool({
    name: toolName(server, listed.name),
    description: (listed.description ?? listed.title ?? '').toWellFormed(),
    // The server validates the arguments: only it knows every keyword of its schema.
    schema: z.looseObject({}),
    // Some vendors refuse a schema without `properties`.
    parameters: { properties: {}, ...parameters },
    idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
    timeoutMs: settings.timeoutMs,
    ...(settings.previewBytes !== undefined && { previewBytes: settings.previewBytes }),
    async run(args, context) {
      const params = { name: listed.name, arguments: args };
      const result = await askAndCall(args, context, (input) =>
        connection.call({ ...params, ...input }, context),
      );
      if (isQuestion(result)) return result;
      const text = resultText(result);
      if (result.isError) throw new Error(redact(text));
      return text;
    },
  });
  const trouble = () => {
    if (connection.isLost()) return `the tool server ${server} was lost; a call tries it again`;
    return connection.offers(listed.name) ? null : `${tool.name} is no longer offered by its server`;
  };
  return { ...tool, takesExact: true, trouble, origin: { server, tool: listed.name } };
}

function isQuestion(result: CallToolResult | ToolText): result is ToolText {
  return 'request' in result;
}

/** A result as the model sees it: text is shown whole, anything else as one line that names it. */
function resultText({ content, structuredContent }: CallToolResult): string {
  const lines = content.map(blockText);
  const hasText = content.some((block) => block.type === 'text' && block.text !== '');
  // Servers repeat structured content as text. If one does not, it is the whole result.
  if (!hasText && structuredContent) lines.unshift(JSON.stringify(structuredContent));
  return lines.filter((line) => line !== '').join('\n');
}
