import { TroupeError } from '../base/errors.ts';
import { AgentId, parseGiven } from '../events/index.ts';
import type { ImportOptions } from './import-transcript.ts';
import { type Format, FORMATS } from './report.ts';

interface ImportRequest {
  format?: string | undefined;
  agent?: string | undefined;
  conversation?: string | undefined;
  fileName?: string | undefined;
}

/** The options of a reader from a request, with the defaults. Throws `import_invalid`. */
export function readImportRequest({
  format,
  agent: author = 'assistant',
  conversation,
  fileName,
}: ImportRequest): ImportOptions {
  return {
    format: formatOf(format),
    agent: parseGiven(AgentId, author, 'agent', 'import_invalid'),
    ...(conversation !== undefined && { conversation }),
    ...(fileName !== undefined && { fileName }),
  };
}

function formatOf(format: string | undefined): Format | 'auto' {
  if (format === undefined || format === 'auto') return 'auto';
  const known = FORMATS.find((name) => name === format);
  if (known) return known;
  throw new TroupeError('import_invalid', `there is no format "${format}"; known: ${FORMATS.join(', ')}`, {
    format,
  });
}
