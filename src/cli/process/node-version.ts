import { TroupeError } from '../../errors.ts';

const LEAST_NODE = 24;

/** Why this Node cannot run Troupe; null if it can. */
export function nodeProblem(version: string): string | null {
  const isEnough = Number.parseInt(version, 10) >= LEAST_NODE;
  return isEnough ? null : `Troupe needs Node ${LEAST_NODE} or newer; this is ${version}`;
}

/** Runs before modules load that need a newer Node: npm only warns. Throws `config_invalid`. */
export function requireNode(version: string): void {
  const problem = nodeProblem(version);
  if (problem !== null) throw new TroupeError('config_invalid', problem, { version });
}
