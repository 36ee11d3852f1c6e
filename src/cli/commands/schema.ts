import { agentsFileSchema } from '../../library/config/agents-schema.ts';
import { print, printJson } from '../render/output.ts';

/** Prints the JSON schema of the agents file. */
export function schema({ json }: { json?: boolean }): void {
  if (json) printJson(agentsFileSchema());
  else print(JSON.stringify(agentsFileSchema(), null, 2));
}
