import type { Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js';

const MAX_NAME_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 32_768;
/** What all parts of Troupe take that read JSON from outside. */
const MAX_DEPTH = 64;
const MAX_SCHEMA_LENGTH = 262_144;
const NAME_SHOWN = 80;

/** Why a tool cannot stand at the head of prompts; null where it can. */
export function toolProblem({ name, title, description, inputSchema }: ListedTool): string | null {
  const tool = `its tool ${JSON.stringify(name.slice(0, NAME_SHOWN))}`;
  if (name === '') return 'it has a tool without a name';
  if (name.length > MAX_NAME_LENGTH)
    return `${tool} has a name of ${name.length} characters, and ${MAX_NAME_LENGTH} are the most`;
  const said = (description ?? title ?? '').length;
  if (said > MAX_DESCRIPTION_LENGTH)
    return `${tool} has a description of ${said} characters, and ${MAX_DESCRIPTION_LENGTH} are the most`;
  if (isDeeper(inputSchema, MAX_DEPTH)) return `${tool} has a schema of more than ${MAX_DEPTH} levels`;
  const length = JSON.stringify(inputSchema).length;
  if (length > MAX_SCHEMA_LENGTH)
    return `${tool} has a schema of ${length} characters, and ${MAX_SCHEMA_LENGTH} are the most`;
  return null;
}

/** Level by level, as a deep value would overflow the stack of whatever goes down into it. */
function isDeeper(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
