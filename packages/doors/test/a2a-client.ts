import { type Artifact, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';

/** The client of the protocol's own SDK, for an agent at this server. */
export async function a2aClient(
  url: string,
  agent: string,
  key?: string,
  binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC',
): Promise<Client> {
  const fetchImpl: typeof fetch = (address, init) => {
    const headers = new Headers(init?.headers);
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    return fetch(address, { ...init, headers });
  };
  const factory = new ClientFactory({
    transports: [
      binding === 'JSONRPC'
        ? new JsonRpcTransportFactory({ fetchImpl })
        : new RestTransportFactory({ fetchImpl }),
    ],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(`${url}/api/a2a/${agent}/`);
}

let count = 0;

/** The parameters of a message of a user. */
export function said(text: string, about: { contextId?: string; taskId?: string; messageId?: string } = {}) {
  count += 1;
  return {
    tenant: '',
    message: {
      messageId: `m-${count}`,
      contextId: '',
      taskId: '',
      role: 1,
      parts: [
        {
          content: { $case: 'text' as const, value: text },
          metadata: undefined,
          filename: '',
          mediaType: '',
        },
      ],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...about,
    },
    configuration: undefined,
    metadata: undefined,
  };
}

export function textOf({ parts }: Pick<Artifact, 'parts'>): string {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
}

export function stateOf(task: Pick<Task, 'status'> | undefined): string {
  return TaskState[task?.status?.state ?? 0] ?? '';
}

/** The state of a client that keeps artifacts, after these events: their texts by id, and the reported states. */
export class Kept {
  readonly texts = new Map<string, string>();
  readonly names = new Set<string>();
  readonly states: string[] = [];
  task: Task | null = null;

  take({ payload }: StreamResponse): void {
    if (payload?.$case === 'task') {
      this.task = payload.value;
      this.texts.clear();
      for (const artifact of payload.value.artifacts) this.#keep(artifact, false);
      this.states.push(stateOf(payload.value));
    }
    if (payload?.$case === 'artifactUpdate' && payload.value.artifact)
      this.#keep(payload.value.artifact, payload.value.append);
    if (payload?.$case === 'statusUpdate') this.states.push(stateOf(payload.value));
  }

  get text(): string {
    return [...this.texts.values()].filter((text) => text !== '').join('|');
  }

  #keep(artifact: Artifact, isMore: boolean): void {
    const { artifactId, name } = artifact;
    this.names.add(name);
    this.texts.set(artifactId, (isMore ? (this.texts.get(artifactId) ?? '') : '') + textOf(artifact));
  }
}
