// Ask a service with each client, and print a line of JSON: {"name": number of components or vectors}.
const address = process.argv[2];
const model = "gramvec-en", apiKey = "k", text = "a fast car";
const found = {};

const { default: OpenAI } = await import("openai");
const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey });
found["openai"] = (await openai.embeddings.create({ model, input: text })).data[0].embedding.length;

const { CohereClientV2 } = await import("cohere-ai");
const cohere = new CohereClientV2({ token: apiKey, environment: address });
const asked = { model, texts: [text], inputType: "search_query", embeddingTypes: ["float"] };
found["cohere-ai"] = (await cohere.embed(asked)).embeddings.float[0].length;

const { InferenceClient } = await import("@huggingface/inference");
const inference = new InferenceClient(apiKey, { endpointUrl: address });
found["@huggingface/inference"] = (await inference.featureExtraction({ inputs: [text] }))[0].length;

const { Ollama } = await import("ollama");
const ollama = new Ollama({ host: address });
found["ollama"] = (await ollama.embed({ model, input: text })).embeddings[0].length;
found["ollama list"] = (await ollama.list()).models.length;

const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
const { embedMany } = await import("ai");
const provider = createOpenAICompatible({ name: "gramvec", baseURL: `${address}/v1`, apiKey });
const many = await embedMany({ model: provider.textEmbeddingModel(model), values: [text, "b"] });
found["@ai-sdk/openai-compatible"] = many.embeddings[1].length;

const { OpenAIEmbeddings } = await import("@langchain/openai");
const langchain = new OpenAIEmbeddings({ model, apiKey, configuration: { baseURL: `${address}/v1` } });
found["@langchain/openai"] = (await langchain.embedQuery(text)).length;

console.log(JSON.stringify(found));
