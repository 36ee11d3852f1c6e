import * as z from 'zod';
import { TroupeDefinition } from './agents-file.ts';

type JsonSchema = Record<string, unknown>;

/** Fields that only code can fill. */
const CODE_ONLY = ['tools', 'providers', 'app'];
/** Models that only a program can provide. */
const OF_CODE = ['ai-sdk', 'custom'];

/** The JSON schema of `agents.json`, for completion and checks in editors. Made from the schema that parses the file. */
export function agentsFileSchema(): JsonSchema {
  const shape = Object.fromEntries(
    Object.entries(TroupeDefinition.shape).filter(([name]) => !CODE_ONLY.includes(name)),
  );
  const schema = z.toJSONSchema(z.strictObject(shape), {
    io: 'input',
    unrepresentable: 'any',
    reused: 'ref',
  }) as JsonSchema;
  const properties = schema['properties'] as Record<string, { items?: JsonSchema }>;
  for (const list of ['agents', 'templates']) refuseUnknown(properties[list]?.items, schema);
  dropCode(schema, (schema['$defs'] ?? {}) as Record<string, JsonSchema>);
  return { title: 'Agents file of Troupe', ...schema };
}

/** Removes the providers that no file can name. */
function dropCode(part: unknown, defs: Record<string, JsonSchema>): void {
  if (typeof part !== 'object' || part === null) return;
  for (const [name, inner] of Object.entries(part)) {
    if (name === 'oneOf')
      (part as JsonSchema)[name] = (inner as Choice[]).filter((choice) => !isOfCode(choice, defs));
    dropCode(inner, defs);
  }
}

interface Choice {
  $ref?: string;
  properties?: { provider?: { const?: string } };
}

function isOfCode({ $ref = '', properties }: Choice, defs: Record<string, JsonSchema>): boolean {
  const { provider } =
    properties ?? (defs[$ref.replace('#/$defs/', '')] as Choice | undefined)?.properties ?? {};
  return OF_CODE.includes(provider?.const ?? '');
}

/** An agent's fields depend on its provider, so only both parts together can detect an unknown one. */
function refuseUnknown(agent: JsonSchema = {}, { $defs }: JsonSchema): void {
  const name = (agent['$ref'] as string | undefined)?.replace('#/$defs/', '') ?? '';
  const { allOf } = (($defs ?? {}) as Record<string, JsonSchema>)[name] ?? agent;
  for (const part of (allOf ?? []) as JsonSchema[]) delete part['additionalProperties'];
  agent['unevaluatedProperties'] = false;
}
