import * as z from 'zod';
import { defineTool, type Tool, type ToolText } from '../tool.ts';
import { type Answered, createAsking } from './input-required.ts';
import { type Connection, MOST_RENEWALS } from './connection.ts';
import type { McpServer } from './settings.ts';
import { toolName } from './tool-name.ts';
import type { OfferedTool } from './tool-problem.ts';

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

export function wrapTool(listed: OfferedTool, { server, settings, connection, redact }: Origin): McpTool {
  const askAndCall = createAsking(`${server}/${listed.name}`);
  const tool = defineTool({
    name: toolName(server, listed.name),
    description: listed.description,
    // The server validates the arguments: only it knows every keyword of its schema.
    schema: z.looseObject({}),
    parameters: listed.parameters,
    idempotent: listed.idempotent,
    timeoutMs: settings.timeoutMs,
    ...(settings.previewBytes !== undefined && { previewBytes: settings.previewBytes }),
    async run(args, context) {
      const params = { name: listed.name, arguments: args };
      const result = await askAndCall(args, context, (input) =>
        connection.call({ ...params, ...input }, context),
      );
      if (isQuestion(result)) return result;
      if (result.isError) throw new Error(redact(result.text));
      return result.text === '' ? undefined : result.text;
    },
  });
  const trouble = () => {
    if (connection.isLost()) return `the tool server ${server} was lost; a call tries it again`;
    return connection.offers(listed.name) ? null : `${tool.name} is no longer offered by its server`;
  };
  return {
    ...tool,
    takesExact: true,
    longestMs: MOST_RENEWALS * settings.timeoutMs,
    trouble,
    origin: { server, tool: listed.name },
  };
}

function isQuestion(result: Answered | ToolText): result is ToolText {
  return 'request' in result;
}
