import { installPythonLibrary, type PythonLibrary } from './python-library.ts';
import { unusableParts } from './unusable.ts';

/** The SDK of A2A for Python, which one test of that door needs. */
const WANTED = {
  name: 'a2a-sdk',
  extras: '[signing]',
  label: 'a2a-sdk',
  version: '1.3.0',
  trial: 'import a2a.types',
};

/** Passes the interpreter and the folder of the SDK to the tests, as JSON. */
export const A2A_PYTHON_ENV = 'TROUPE_A2A_PYTHON';
const SWITCH = 'TROUPE_TEST_A2A_PYTHON';

export type A2aPython = PythonLibrary | { not: string };

/** Finds or installs it. `TROUPE_TEST_A2A_PYTHON=none` does neither. */
export async function installA2aPython(env: NodeJS.ProcessEnv = process.env): Promise<A2aPython> {
  const unusable = unusableParts(env)['A2A Python SDK'];
  if (unusable !== undefined) return { not: unusable };
  const given = env[A2A_PYTHON_ENV];
  if (given) return JSON.parse(given) as PythonLibrary;
  return env[SWITCH] === 'none' ? { not: `${SWITCH}: none` } : installPythonLibrary(WANTED);
}

export function describeA2aPython(sdk: A2aPython): string {
  return `A2A's Python SDK: ${'not' in sdk ? `none (${sdk.not})` : `${sdk.version} (pip)`}`;
}
