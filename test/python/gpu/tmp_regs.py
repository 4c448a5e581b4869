import pytest
import test_gpu_registers as t
CASES=[(d,e,o,("sum",w)) for d in (4,48,96,192,256,1024) for o in ("lamb","partial_rowwise_lamb") for e,w in (("bf16",True),)]
@pytest.mark.parametrize("dim,element,optimizer,pooling", CASES)
def test_x(dim,element,optimizer,pooling,tmp_path):
    from support import artifact
    kind, weighted = pooling
    model = t.Model([t.Table("t", 1000, dim, element, t.Optimizer(optimizer,weight_decay=0.1))],
                  [t.Input("x", ("f",), (t.Lookup("f", "t", kind, weighted),), "i64", weighted)])
    plan = t.Plan(1, [t.Shard("t", (0, 1000), (0, dim), (0,))])
    folder = artifact.compile_text(model.text(plan), tmp_path / "model", "--training", "-O", "0", "--gpu", "sm_80,sm_90")
    for cubin in sorted(folder.glob("*.cubin")):
        for k in t.check_sass.inspect(cubin):
            if "update" in k.base_name: print(dim,element,optimizer,weighted,cubin.name[-12:],k.name if hasattr(k,"name") else k.base_name,k.registers,k.stack_bytes,"LIMIT",t.most_stack_bytes(k,dim,optimizer), t.check_sass.violations(k))
