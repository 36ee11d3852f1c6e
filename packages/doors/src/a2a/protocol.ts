/** A2A 1.0 as JSON: the ProtoJSON of `lf.a2a.v1`. Only what Troupe writes. */

export const PROTOCOL_VERSION = '1.0';

export type TaskState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_INPUT_REQUIRED';

export type A2aPart = { metadata?: object } & (
  | { text: string }
  | { raw: string; mediaType: string; filename?: string }
  | { data: unknown }
);

export interface A2aMessage {
  messageId: string;
  contextId: string;
  taskId: string;
  role: 'ROLE_USER' | 'ROLE_AGENT';
  parts: A2aPart[];
  metadata?: object;
}

export interface TaskStatus {
  state: TaskState;
  /** ISO 8601, UTC. */
  timestamp: string;
  message?: A2aMessage;
}

export interface Artifact {
  artifactId: string;
  name: string;
  parts: A2aPart[];
  metadata: object;
}

export interface A2aTask {
  id: string;
  contextId: string;
  status: TaskStatus;
  artifacts?: Artifact[];
  history?: A2aMessage[];
}

interface About {
  taskId: string;
  contextId: string;
}

export type ArtifactUpdate = About & { artifact: Artifact; append: boolean; lastChunk: boolean };
export type StatusUpdate = About & { status: TaskStatus };

/** What a stream tells after its task. */
export type TaskUpdate = { artifactUpdate: ArtifactUpdate } | { statusUpdate: StatusUpdate };

/** One event of a stream. */
export type StreamResponse = { task: A2aTask } | TaskUpdate;
