import { AgentId, parseGiven } from '../../events/index.ts';
import type { ImportOptions } from './import-transcript.ts';

/** What is imported, and where to. */
export interface ImportRequest {
  /** Default: detected. */
  format?: string | undefined;
  /** Id of the agent that becomes the author of assistant messages. Default `assistant`. */
  agent?: string | undefined;
  /** Id of the conversation, or prefix of the ids if the file holds several. */
  conversation?: string | undefined;
  /** Name of the file, for messages of errors. */
  fileName?: string | undefined;
}

export interface ImportLimits {
  /** Whether an imported file may write to a conversation and name it in tasks. Default: any. */
  mayLeadTo?: ((conversation: string) => boolean) | undefined;
  /** Whether its caller may read every conversation of the tenant. Default: yes. */
  readsAll?: boolean | undefined;
}

/** The options of a reader from a request, with the defaults. Throws `import_invalid`. */
export function readImportRequest({
  format,
  agent: author = 'assistant',
  conversation,
  fileName,
}: ImportRequest): ImportOptions {
  return {
    ...(format !== undefined && { format }),
    agent: parseGiven(AgentId, author, 'agent', 'import_invalid'),
    ...(conversation !== undefined && { conversation }),
    ...(fileName !== undefined && { fileName }),
  };
}
