import type { Tool as ListedTool } from '@modelcontextprotocol/client';
import * as z from 'zod';
import { isDeeper } from './results.ts';

/** The depth that all JSON readers of Troupe accept. */
const MAX_DEPTH = 64;
/** What a list is searched for before it is validated. */
const ListedTools = z.array(z.object({ name: z.string(), inputSchema: z.unknown() }).nullable().catch(null));

/** Before the list is validated, whose errors do not name a tool. */
export function assertFlatSchemas(tools: unknown): void {
  const deep = ListedTools.safeParse(tools).data?.find((tool) => isDeeper(tool?.inputSchema, MAX_DEPTH));
  if (deep) throw new Error(`${toolNamed(deep.name)} has a schema of more than ${MAX_DEPTH} levels`);
}

const MAX_NAME_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 32_768;
const MAX_SCHEMA_LENGTH = 262_144;
const NAME_SHOWN = 80;

function toolNamed(name: string): string {
  return `its tool ${JSON.stringify(name.slice(0, NAME_SHOWN))}`;
}

/** Why a tool cannot be offered to models; null if it can. */
export function toolProblem({ name, title, description, inputSchema }: ListedTool): string | null {
  const tool = toolNamed(name);
  if (name === '') return 'it has a tool without a name';
  if (name.length > MAX_NAME_LENGTH)
    return `${tool} has a name of ${name.length} characters; the limit is ${MAX_NAME_LENGTH}`;
  const said = (description ?? title ?? '').length;
  if (said > MAX_DESCRIPTION_LENGTH)
    return `${tool} has a description of ${said} characters; the limit is ${MAX_DESCRIPTION_LENGTH}`;
  const length = JSON.stringify(inputSchema).length;
  if (length > MAX_SCHEMA_LENGTH)
    return `${tool} has a schema of ${length} characters; the limit is ${MAX_SCHEMA_LENGTH}`;
  return null;
}
