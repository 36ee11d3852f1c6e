import { installPythonLibrary, type PythonLibrary } from './python-library.ts';
import { unusableParts } from './unusable.ts';

/** OpenAI's SDK for Python, which one test of the OpenAI door needs. */
const WANTED = {
  name: 'openai',
  label: 'openai',
  version: '3.57.0',
  trial: 'import openai; openai.OpenAI(api_key="k")',
};

/** Passes the interpreter and the folder of the SDK to the tests, as JSON. */
export const OPENAI_PYTHON_ENV = 'TROUPE_OPENAI_PYTHON';
const SWITCH = 'TROUPE_TEST_OPENAI_PYTHON';

export type OpenAiPython = PythonLibrary | { not: string };

/** Finds or installs it. `TROUPE_TEST_OPENAI_PYTHON=none` does neither. */
export async function installOpenAiPython(env: NodeJS.ProcessEnv = process.env): Promise<OpenAiPython> {
  const unusable = unusableParts(env)['OpenAI Python SDK'];
  if (unusable !== undefined) return { not: unusable };
  const given = env[OPENAI_PYTHON_ENV];
  if (given) return JSON.parse(given) as PythonLibrary;
  return env[SWITCH] === 'none' ? { not: `${SWITCH}: none` } : installPythonLibrary(WANTED);
}

export function describeOpenAiPython(sdk: OpenAiPython): string {
  return `OpenAI's Python SDK: ${'not' in sdk ? `none (${sdk.not})` : `${sdk.version} (pip)`}`;
}
